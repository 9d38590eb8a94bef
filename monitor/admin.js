/*
 * The admin port: the dashboard, health, the last frame and the metrics over HTTP, and the ways to publish, to revoke, to collect
 * garbage, to reload and to drain. access.js says who may use it.
 */
import { createServer } from 'node:http';
import { channelNameProblem } from '../lib/channelnames.js';
import { limitConnections } from '../lib/crowd.js';
import { HoldfastError, messageOf } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';
import { Histogram } from '../lib/histogram.js';
import { openPort } from '../lib/port.js';
import { listenerOf, pathsOf, RequestError, readBody } from '../lib/router.js';
import { Access } from './access.js';
import { Live } from './web/live.js';
import { webRoutes } from './web/routes.js';

/** The largest message that can be published. */
const MOST_MESSAGE_BYTES = 65_536;
/** Enough for its readers, too few to use up the primary's file descriptors. */
const MOST_CONNECTIONS = 256;
/** Publishers that may wait for their outcome, so that probes and dashboards still find a connection. */
const MOST_PUBLISHERS = 192;
/** How long a request may take to arrive, and how long a connection may wait for the next one. */
const REQUEST_MS = 5000;
const IDLE_MS = 5000;
/** How long a client may take no bytes of its answer. Dashboards get something at least every 15 s. */
const SILENT_MS = 60_000;
/** On one connection: who sends very many at once does not read the answers. */
const MOST_REQUESTS = 100;
const RETRY_AFTER_S = 1;
/** How long answers may take when another server takes over. */
const FINISH_MS = 1000;

/** @typedef {import('../lib/router.js').Answer} Answer */
/** @typedef {import('../lib/router.js').Route} Route */
/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {{ listeners: number, unanswered: number }} Outcome of a publication: listeners, and workers whose answer is missing */
/** @typedef {{ workers: number, unanswered: number, nodes?: number, silent?: number, isConnected?: boolean }} Revoked in how many workers; `silent`:
 *   nodes that have not answered; `isConnected`: whether other nodes could be told */

export class Admin {
  /**
   * @param {object} server
   * @param {string} server.host
   * @param {string} server.token '' for none
   * @param {() => string} server.problem why it does not accept all streams; '' if it does
   * @param {(channel: string, message: string) => Promise<Outcome>} server.publish
   * @param {string} server.hubPath
   * @param {(request: IncomingMessage) => Promise<Answer>} server.post publishes to the hub
   * @param {(request: IncomingMessage) => Promise<Revoked>} server.revoke ends streams of the hub
   * @param {() => void} server.collectGarbage
   * @param {() => string} server.reload begins; returns what happens. Throws a HoldfastError with the reason if it can't
   * @param {() => string} server.drain begins; returns what happens, '' if it has begun already
   * @param {import('./web/live.js').Source} server.live
   */
  constructor({ host, token, problem, publish, hubPath, post, revoke, collectGarbage, reload, drain, live }) {
    this.host = host;
    this.problem = problem;
    this.publish = publish;
    this.post = post;
    this.revoke = revoke;
    this.collectGarbage = collectGarbage;
    this.reload = reload;
    this.drain = drain;
    this.live = new Live(live);
    this.access = new Access({ host, token });
    this.routes = [...this.routesOf(hubPath), ...webRoutes(this.access, this.live)];
    /** Waiting for their outcome. */
    this.publishers = 0;
    /** @type {import('./frame.js').Frame | null} */
    this.frame = null;
    /** All ticks of each worker that is alive. @type {Map<number, { id: number, ticks: Histogram }>} by pid */
    this.ticks = new Map();
    const timeouts = { headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS, keepAliveTimeout: IDLE_MS };
    const checks = { connectionsCheckingInterval: REQUEST_MS / 5 };
    const check = (/** @type {IncomingMessage} */ request) => this.access.check(request);
    this.server = createServer({ ...timeouts, ...checks }, listenerOf(this.routes, { check }));
    this.server.maxRequestsPerSocket = MOST_REQUESTS;
    this.server.timeout = SILENT_MS;
    limitConnections(this.server, MOST_CONNECTIONS);
  }

  /** @param {string} hubPath @returns {Route[]} */
  routesOf(hubPath) {
    return [
      { methods: ['GET'], path: '/healthz', handle: () => ({ status: 200, body: 'ok\n' }) },
      { methods: ['GET'], path: '/readyz', handle: () => this.readiness() },
      { methods: ['GET'], path: '/frame', handle: () => ({ status: 200, body: this.lastFrame() }) },
      { methods: ['GET'], path: '/ticks', handle: () => ({ status: 200, body: this.allTicks() }) },
      { methods: ['GET'], path: '/metrics', handle: () => this.metrics() },
      { methods: ['POST'], path: '/publish', handle: (request, url) => this.takeMessage(request, url) },
      { methods: ['POST'], path: hubPath, handle: (request) => this.takePublications(request) },
      { methods: ['POST'], path: '/revoke', handle: (request) => this.takeRevocations(request) },
      { methods: ['POST'], path: '/gc', handle: (request) => this.takeGc(request) },
      { methods: ['POST'], path: '/reload', handle: (request) => this.takeReload(request) },
      { methods: ['POST'], path: '/drain', handle: (request) => this.takeDrain(request) },
    ];
  }

  /** @returns {string} what there is, for people */
  get paths() {
    return pathsOf(this.routes);
  }

  /** @param {number} port 0 for a free one @returns {Promise<number>} the port */
  async listen(port) {
    this.server.off('request', lastAnswer);
    const bound = await openPort(this.server, { port, host: this.host, flag: 'admin-port' });
    this.access.useCookieOf(bound);
    return bound;
  }

  /** Another server gets the port: connections are closed after their next answer, or soon. */
  leavePort() {
    this.server.close();
    this.server.prependListener('request', lastAnswer);
    setTimeout(() => this.server.closeAllConnections(), FINISH_MS).unref();
  }

  /** @returns {Answer} */
  readiness() {
    const problem = this.problem();
    return problem ? { status: 503, body: `not ready: ${problem}\n` } : { status: 200, body: 'ready\n' };
  }

  /** @returns {import('./frame.js').Frame} */
  lastFrame() {
    if (!this.frame) throw new RequestError(503, 'no frame yet');
    return this.frame;
  }

  /** @returns {Promise<Answer>} */
  async metrics() {
    const frame = this.lastFrame();
    const { METRICS_TYPE, metricsText } = await import('./metrics.js'); // 5 MB that only Prometheus needs
    return { status: 200, type: METRICS_TYPE, body: await metricsText(frame) };
  }

  /**
   * POST /publish?channel=NAME, the body is the message. The answer comes once all workers have delivered it, and has the
   * number of streams. Web pages may not publish.
   * @param {IncomingMessage} request @param {URL} url @returns {Promise<Answer>}
   */
  async takeMessage(request, { searchParams }) {
    this.access.checkNoPage(request);
    const [channel, ...others] = searchParams.getAll('channel');
    if (others.length > 0)
      throw new RequestError(400, `got ${others.length + 1} channels: publish to one at a time`);
    if (!channel) throw new RequestError(400, 'no channel given: use /publish?channel=NAME');
    const problem = channelNameProblem([channel]);
    if (problem) throw new RequestError(400, problem);
    if ((request.headers['content-encoding'] ?? 'identity') !== 'identity')
      throw new RequestError(415, 'the body must not be compressed: it has a Content-Encoding');
    const message = await readBody(request, MOST_MESSAGE_BYTES);
    const { listeners, unanswered } = await this.inTurn(() => this.publish(channel, message)).catch(refusal);
    return { status: 202, body: unanswered > 0 ? { listeners, unanswered } : { listeners } };
  }

  /** POST to the path of the hub: the same as there, but without a token. @param {IncomingMessage} request @returns {Promise<Answer>} */
  async takePublications(request) {
    this.access.checkNoPage(request);
    return this.inTurn(() => this.post(request)).catch(refusal);
  }

  /**
   * POST /revoke ends streams of the hub: subject, token (its jti) or topic, as a form or as JSON, as often as you like. Nobody
   * knows how many streams that are until they have ended (closedRevoked in /frame).
   * @param {IncomingMessage} request @returns {Promise<Answer>}
   */
  async takeRevocations(request) {
    this.access.checkNoPage(request);
    const { workers, unanswered, nodes = 1, silent = 0, isConnected = true } = await this.revoke(request);
    const problems = [
      unanswered > 0 && `${unanswered} of ${formatNoun(workers, 'worker')} did not answer`,
      silent > 0 && `${silent} of ${formatNoun(nodes, 'node')} did not answer`,
      !isConnected && 'this node is not connected to NATS',
    ].filter((problem) => problem !== false);
    const where = formatNoun(workers, 'worker') + (nodes > 1 ? ` of ${nodes} nodes` : '');
    if (problems.length === 0) return { status: 202, body: `revoked in ${where}\n` };
    const line = `${problems.join('; ')}: their streams may go on`;
    throw new RequestError(503, line, { 'Retry-After': String(RETRY_AFTER_S) });
  }

  /** POST /gc: the button, and `curl -X POST -H 'X-Holdfast: 1'`. @param {IncomingMessage} request @returns {Answer} */
  takeGc(request) {
    this.access.checkOwnPage(request);
    this.collectGarbage();
    return { status: 202, body: 'requested GC in every worker\n' };
  }

  /** POST /reload: other workers take over, with the code that is on disk now. @param {IncomingMessage} request @returns {Answer} */
  takeReload(request) {
    this.access.checkOwnPage(request);
    try {
      return { status: 202, body: `${this.reload()}\n` };
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      throw new RequestError(409, messageOf(error));
    }
  }

  /** POST /drain: the same as Ctrl-C, but a second one changes nothing. @param {IncomingMessage} request @returns {Answer} */
  takeDrain(request) {
    this.access.checkOwnPage(request);
    const line = this.drain();
    if (!line) throw new RequestError(409, 'the server is draining already');
    this.live.tellState();
    return { status: 202, body: `${line}\n` };
  }

  /** @template T @param {() => Promise<T>} publish @returns {Promise<T>} @throws {HoldfastError} BUSY */
  async inTurn(publish) {
    if (this.publishers >= MOST_PUBLISHERS)
      throw new HoldfastError(
        'BUSY',
        `too many publishers: ${MOST_PUBLISHERS} are waiting for their outcome`,
      );
    this.publishers++;
    try {
      return await publish();
    } finally {
      this.publishers--;
    }
  }

  /** @param {import('./frame.js').Frame} frame @param {import('./frame.js').WorkerReading[]} workers */
  show(frame, workers) {
    this.frame = frame;
    this.live.show(frame);
    const before = this.ticks;
    this.ticks = new Map();
    for (const { id, pid, ticks } of workers) {
      const all = before.get(pid)?.ticks ?? new Histogram('µs');
      this.ticks.set(pid, { id, ticks: all.merge(ticks.encode()) });
    }
  }

  /** Histograms since each worker started. Two answers tell what happened between them (`Histogram.less`). */
  allTicks() {
    return {
      workers: [...this.ticks].map(([pid, { id, ticks }]) => ({ id, pid, ticks: ticks.encode() })),
    };
  }

  /** @param {string} line */
  note(line) {
    this.live.note(line);
  }

  /** @returns {Promise<void>} */
  async close() {
    this.server.close();
    await this.live.close();
    this.server.closeAllConnections();
  }
}

/** @param {IncomingMessage} _request @param {import('node:http').ServerResponse} response after which the connection is closed */
function lastAnswer(_request, response) {
  response.shouldKeepAlive = false;
}

/** @param {unknown} error of a publication @returns {never} @throws {RequestError} 400, 413, or 503 if a later attempt may succeed */
function refusal(error) {
  if (!(error instanceof HoldfastError)) throw error;
  if (error.code === 'BAD_ARGUMENT') throw new RequestError(400, messageOf(error));
  if (error.code === 'TOO_LARGE') throw new RequestError(413, messageOf(error));
  throw new RequestError(503, messageOf(error), { 'Retry-After': String(RETRY_AFTER_S) });
}
