/*
 * The buttons that do something to the server. They ask first, and say what came of it.
 */
import { byId, setText } from './dom.js';

/** @typedef {{ button: string, path: string, title: string, text: string, yes: string }} Action */

/** @type {Action[]} */
const ACTIONS = [
  {
    button: 'gc',
    path: '/gc',
    title: 'Collect garbage now?',
    text: 'Every worker runs a full garbage collection now. Its event loop pauses meanwhile, usually for less than 100 ms.',
    yes: 'Collect garbage',
  },
  {
    button: 'reload',
    path: '/reload',
    title: 'Reload the workers?',
    text: 'New workers start one after the other, with the code that is on disk now, and take over all streams. Clients notice nothing.',
    yes: 'Reload',
  },
  {
    button: 'drain',
    path: '/drain',
    title: 'Drain the server?',
    text: 'It stops accepting, closes all streams gradually and exits, as with Ctrl-C. It only comes back if something restarts it.',
    yes: 'Drain and stop',
  },
];

/** @param {string} line */
function say(line) {
  setText(byId('result'), line);
}

/** @param {Action} action @returns {Promise<boolean>} the answer; Esc is no */
function confirmed({ title, text, yes }) {
  const dialog = /** @type {HTMLDialogElement} */ (byId('dialog'));
  setText(byId('dialog-title'), title);
  setText(byId('dialog-text'), text);
  setText(byId('dialog-yes'), yes);
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

/** @param {Action} action */
async function perform(action) {
  if (!(await confirmed(action))) return;
  const button = /** @type {HTMLButtonElement} */ (byId(action.button));
  button.disabled = true;
  say(`${action.yes}: asking the server`);
  try {
    const response = await fetch(action.path, { method: 'POST', headers: { 'X-Holdfast': '1' } });
    const text = (await response.text()).trim();
    say(response.ok ? `Server: ${text}` : `Refused: ${text}`);
  } catch {
    say("Can't reach the server: nothing was done.");
  }
  button.disabled = false;
}

export function prepareActions() {
  const dialog = /** @type {HTMLDialogElement} */ (byId('dialog'));
  byId('dialog-no').addEventListener('click', () => dialog.close('no'));
  byId('dialog-yes').addEventListener('click', () => dialog.close('yes'));
  for (const action of ACTIONS) byId(action.button).addEventListener('click', () => void perform(action));
}
