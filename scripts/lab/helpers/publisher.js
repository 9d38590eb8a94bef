/*
 * Publishes numbered messages to a hub, over connections that stay open, each with one request at a time. It is as cheap as it
 * can be, because it shares the machine with the hub: requests are written to sockets, and of an answer only the status is read.
 */
import { connect, Socket } from 'node:net';
import { percentilesOf } from '../../../fleet/drone/histograms.js';
import { Rate } from '../../../fleet/drone/rate.js';
import { dataOf } from '../../../fleet/drone/topics/publication.js';
import { signerOf } from '../../../fleet/drone/topics/tokens.js';
import { Histogram } from '../../../lib/histogram.js';
import { follow } from './orders.js';
import { Turns } from './turns.js';

const TICK_MS = 1;
/** Until a connection that was closed is opened again, and until a request that was refused is sent again. */
const AGAIN_MS = 5;
const CLOSED = 'a connection was closed';
const TTL_S = 86_400;
const HEAD_END = '\r\n\r\n';
const LAST = /\r\nconnection: *close/i;

/**
 * @typedef {object} How
 * @property {number} port
 * @property {string} path
 * @property {string} secret of the hub's tokens
 * @property {string} topic template with {n}
 * @property {number} topics how many
 * @property {import('./turns.js').Series[]} [series] instead of the two above: each of them gets the next publication in turn
 * @property {number} connections
 * @property {number} batch publications per request; 1: as a form
 * @property {boolean} isNumbered whether the messages are for the crowd, which checks them
 * @property {boolean} [comesBack] if a connection is closed, open it again, and repeat what was not answered: each publication has its
 *   own id
 * @property {boolean} [isPatient] send again what the hub refuses because it has too much to do; and each run has its own connections,
 *   so that there may be any time between two of them
 */

/** A connection, and the topics that only it publishes to. */
class Lane {
  /** @param {Turns[]} turns @param {How} how @param {string} head of each request, without its length */
  constructor(turns, { batch, isNumbered, port, comesBack = false, isPatient = false }, head) {
    this.turns = turns;
    this.batch = batch;
    this.isNumbered = isNumbered;
    this.port = port;
    this.comesBack = comesBack;
    this.isPatient = isPatient;
    this.head = head;
    /** What was sent last. */
    this.request = '';
    /** How many streams get it. */
    this.audience = 0;
    this.next = 0;
    this.answer = '';
    this.begunMs = 0;
    this.isBusy = false;
    /** Requests that are due. */
    this.due = 0;
    this.socket = isPatient ? new Socket() : this.open();
  }

  open() {
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    socket.setEncoding('latin1');
    socket.on('data', (/** @type {string} */ text) => this.read(text));
    socket.on('error', (error) => this.comesBack || fail(error.message));
    socket.on('close', () => (this.comesBack ? setTimeout(() => this.openAgain(), AGAIN_MS) : fail(CLOSED)));
    return socket;
  }

  /** No request is on its way. */
  renew() {
    this.socket.removeAllListeners('close').destroy();
    this.socket = this.open();
  }

  openAgain() {
    if (isFinished) return;
    reopened++;
    this.answer = '';
    this.socket = this.open();
    if (this.isBusy) this.socket.write(this.request, 'latin1');
  }

  /** Sends the next request, if it is time. */
  send() {
    if (this.isBusy || (pace > 0 && this.due === 0) || performance.now() >= endMs) return;
    this.due--;
    this.isBusy = true;
    running++;
    this.begunMs = performance.now();
    this.audience = 0;
    const publications = Array.from({ length: this.batch }, () => this.publication());
    const body = this.batch === 1 ? formOf(publications[0]) : JSON.stringify(publications);
    this.request = `${this.head}Content-Length: ${Buffer.byteLength(body)}${HEAD_END}${body}`;
    this.socket.write(this.request, 'latin1');
  }

  /** Nothing of it was stored. */
  sendAgain() {
    refused++;
    this.answer = '';
    setTimeout(() => this.socket.write(this.request, 'latin1'), AGAIN_MS);
  }

  publication() {
    const { name, number, streams } = this.turns[this.next++ % this.turns.length].next();
    this.audience += streams;
    if (!this.isNumbered) return { topic: `${name}/${number}`, data: 'x'.repeat(64) };
    const data = dataOf({ publisher, number, clock: 'monotonic', topic: name }, 1);
    return this.comesBack
      ? { topic: name, data, id: `${publisher} ${name} ${number}` }
      : { topic: name, data };
  }

  /** @param {string} text of the answer to the request that is on its way */
  read(text) {
    this.answer += text;
    const end = this.answer.indexOf(HEAD_END);
    if (end < 0) return;
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.answer)?.[1] ?? 0;
    if (this.answer.length < end + HEAD_END.length + Number(length)) return;
    const isRefused = this.answer.startsWith('HTTP/1.1 503');
    if (this.comesBack && isRefused) return void this.socket.destroy(); // and then it is repeated
    if (this.isPatient && LAST.test(this.answer)) this.renew(); // the admin port closes each connection after some requests
    if (this.isPatient && isRefused) return this.sendAgain();
    if (this.answer.startsWith('HTTP/1.1 200')) {
      sent += this.batch;
      expected += this.audience;
    } else fail(this.answer.slice(0, 200));
    latency.record((performance.now() - this.begunMs) * 1000);
    this.answer = '';
    this.isBusy = false;
    running--;
    this.send();
    if (running === 0 && performance.now() >= endMs) onOver();
  }
}

/** @param {How} how @param {string} head @returns {Lane[]} */
function lanesOf({ series = [], ...how }, head) {
  const all = series.length > 0 ? series : [how];
  const count = Math.min(how.connections, ...all.map(({ topics }) => topics));
  const turnsOf = (/** @type {number} */ lane) => all.map((one) => new Turns(one, lane, count));
  return Array.from({ length: count }, (_, lane) => new Lane(turnsOf(lane), how, head));
}

/** @param {{ topic: string, data: string, id?: string }} publication */
function formOf({ topic, data, id = '' }) {
  const own = id === '' ? '' : `&id=${encodeURIComponent(id)}`;
  return `topic=${encodeURIComponent(topic)}&data=${encodeURIComponent(data)}${own}`;
}

/** @type {Lane[]} */
let lanes = [];
let latency = new Histogram('µs');
let [sent, failed, running, pace, endMs] = [0, 0, 0, 0, 0];
/** What streams must get in total of what was sent, and requests that the hub refused at first. */
let [expected, refused] = [0, 0];
/** Tells the publications of this process from those of one before it. */
const publisher = Date.now();
let problem = '';
/** Connections that were closed, and opened again. */
let reopened = 0;
let isFinished = false;
let onOver = () => {};

/** @param {string} what */
function fail(what) {
  failed++;
  problem = what;
  onOver();
}

follow({
  /** Once. @param {How} how */
  aim(how) {
    const token = signerOf({ secret: how.secret, dialect: '0.x', ttlS: TTL_S })('lab', 'publish', ['*']);
    const type = how.batch === 1 ? 'application/x-www-form-urlencoded' : 'application/json';
    const head = `POST ${how.path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: ${type}\r\n`;
    lanes = lanesOf(how, head);
  },

  /**
   * Publishes for a while, or so many requests in total.
   * @param {{ ms?: number, requests?: number, perSecond?: number }} run requests per second; 0: as many as it can
   */
  async run({ ms = 0, requests = 0, perSecond = 0 }) {
    [sent, failed, problem, reopened, latency] = [0, 0, '', 0, new Histogram('µs')];
    [expected, refused] = [0, 0];
    for (const lane of lanes) {
      lane.due = 0; // what the run before was too slow for
      if (lane.isPatient) lane.renew();
    }
    const begunMs = performance.now();
    endMs = begunMs + (ms || 60_000);
    pace = perSecond || requests;
    const over = new Promise((resolve) => {
      onOver = () => resolve(undefined);
    });
    if (requests > 0) await publishSome(requests);
    else {
      const stop = perSecond > 0 ? startPace(perSecond) : startAll();
      setTimeout(() => running === 0 && onOver(), ms + TICK_MS);
      await over;
      stop();
    }
    const tookMs = performance.now() - begunMs;
    return { sent, expected, refused, failed, problem, reopened, tookMs, latency: percentilesOf(latency) };
  },

  /** Ends a run early: nothing more is sent, and what was is still waited for. */
  finish() {
    endMs = performance.now();
    if (running === 0) onOver();
  },

  /** Connections that are closed from now on stay closed. */
  leave() {
    isFinished = true;
  },
});

/** @param {number} requests */
async function publishSome(requests) {
  for (let i = 0; i < requests; i++) lanes[i % lanes.length].due++;
  for (const lane of lanes) lane.send();
  while (lanes.some(({ isBusy, due }) => isBusy || due > 0)) {
    if (failed > 0) throw new Error(problem);
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
}

/** @param {number} perSecond @returns {() => void} stops it */
function startPace(perSecond) {
  const rate = new Rate();
  let turn = 0;
  rate.take(performance.now(), perSecond);
  const timer = setInterval(() => {
    for (let due = rate.take(performance.now(), perSecond); due > 0; due--) {
      const lane = lanes[turn++ % lanes.length];
      lane.due++;
      lane.send();
    }
  }, TICK_MS);
  return () => clearInterval(timer);
}

function startAll() {
  for (const lane of lanes) lane.send();
  return () => {};
}
