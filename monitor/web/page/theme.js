/*
 * The theme, before anything is drawn: that of the system, or the one that was chosen here. Not a module, because those come later.
 */
(() => {
  const KEY = 'holdfast-theme';
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen = '';
  try {
    chosen = localStorage.getItem(KEY) ?? '';
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
  const apply = () => {
    document.documentElement.dataset.theme = chosen || (system.matches ? 'dark' : 'light');
    document.dispatchEvent(new Event('themechange'));
  };
  const choose = (/** @type {string} */ theme) => {
    chosen = theme;
    apply();
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // the same
    }
  };
  system.addEventListener('change', apply);
  apply();
  document.addEventListener('DOMContentLoaded', () => {
    const select = /** @type {HTMLSelectElement} */ (document.getElementById('theme'));
    select.value = chosen;
    select.addEventListener('change', () => choose(select.value));
  });
})();
