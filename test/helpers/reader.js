/*
 * A client of the hub that behaves like EventSource, with several servers: it comes back, to the next one, with its cursor.
 */
import { get } from 'node:http';

const AGAIN_MS = 50;

export class Reader {
  /**
   * @param {import('node:test').TestContext} t it ends after the test
   * @param {readonly number[]} ports of servers on this machine
   * @param {string} path with the query
   */
  constructor(t, ports, path) {
    this.ports = ports;
    this.path = path;
    this.turn = 0;
    this.cursor = '';
    /** @type {string[]} data of all events, in the order in which they came */
    this.datas = [];
    /** @type {{ port: number, status: number, reported: string | undefined }[]} of all responses */
    this.responses = [];
    this.isOpen = false;
    this.isOver = false;
    /** @type {import('node:http').ClientRequest | null} */
    this.request = null;
    t.after(() => this.close());
    this.connect();
  }

  connect() {
    if (this.isOver) return;
    const port = this.ports[this.turn++ % this.ports.length];
    const headers = this.cursor ? { 'Last-Event-ID': this.cursor } : {};
    let isDone = false;
    const again = () => {
      this.isOpen = false;
      if (isDone) return;
      isDone = true;
      setTimeout(() => this.connect(), AGAIN_MS);
    };
    this.request = get({ port, host: '127.0.0.1', path: this.path, headers, agent: false }, (response) => {
      this.responses.push({
        port,
        status: response.statusCode ?? 0,
        reported: /** @type {string | undefined} */ (response.headers['last-event-id']),
      });
      this.isOpen = response.statusCode === 200;
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (data) => {
        const blocks = (text + data).split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) this.take(block);
      });
      response.on('error', again);
      response.on('close', again);
    });
    this.request.on('error', again);
  }

  /** @param {string} block of an event stream */
  take(block) {
    const lines = block.split('\n');
    for (const line of lines) if (line.startsWith('id: ')) this.cursor = line.slice(4);
    const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
    if (data.length > 0) this.datas.push(data.join('\n'));
  }

  close() {
    this.isOver = true;
    this.request?.destroy();
  }
}
