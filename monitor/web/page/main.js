/*
 * The dashboard: connects the parts, and draws when there is something new.
 */
import { prepareActions } from './actions.js';
import { Charts } from './charts.js';
import { Connection } from './connection.js';
import { byId, setText } from './dom.js';
import { showNotes, showTopics } from './lists.js';
import { clock } from './plot.js';
import { Store } from './store.js';
import { showFrame } from './tables.js';

/** With many frames per second, the page is drawn less often. */
const DRAW_MS = 250;

const store = new Store();
const charts = new Charts();
let rangeS = 300;
let isPaused = false;
let statusText = '';
let drawnMs = Number.NEGATIVE_INFINITY;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

function draw() {
  drawnMs = performance.now();
  showFrame(store);
  showTopics(store);
  showNotes(store);
  charts.draw(store, rangeS);
}

/** Soon, unless the page is paused or nobody sees it. */
function drawSoon() {
  if (isPaused || document.hidden || timer !== undefined) return;
  timer = setTimeout(
    () => requestAnimationFrame(drawNow),
    Math.max(0, drawnMs + DRAW_MS - performance.now()),
  );
}

/** It may have been paused meanwhile. */
function drawNow() {
  timer = undefined;
  if (!isPaused) draw();
}

/** @param {boolean} isRestart */
function showAbout(isRestart) {
  const { about } = store;
  if (!about) return;
  setText(byId('about'), `${about.hostname} · ${about.version} · ${about.transport} transport`);
  document.title = `Holdfast · ${about.hostname}`;
  if (isRestart) setText(byId('result'), 'The server restarted: its history begins here.');
  drawSoon();
}

/** @param {string} state @param {string} text */
function showStatus(state, text) {
  byId('status').dataset.state = state;
  statusText = text;
  setText(byId('status-text'), isPaused ? `${text}, paused` : text);
}

function prepareTools() {
  for (const input of document.querySelectorAll('input[name=range]'))
    input.addEventListener('change', () => {
      rangeS = Number(/** @type {HTMLInputElement} */ (input).value);
      draw();
    });
  byId('pause').addEventListener('click', () => {
    isPaused = !isPaused;
    byId('pause').setAttribute('aria-pressed', String(isPaused));
    setText(byId('status-text'), isPaused ? `paused at ${clock(Date.now())}` : statusText);
    drawSoon();
  });
  document.addEventListener('visibilitychange', drawSoon);
}

prepareTools();
prepareActions();
new Connection(store, {
  onStatus: showStatus,
  onHistory: showAbout,
  onFrame: drawSoon,
  onTopics: drawSoon,
  onNote: drawSoon,
}).open();
