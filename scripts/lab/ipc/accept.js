/*
 * Two workers that keep connections, and three ways for these to come to them; or none, in one process.
 *
 *     accept.js alone PORT          one process accepts and keeps
 *     accept.js shared PORT         the workers accept on one shared socket
 *     accept.js round-robin PORT    node's cluster hands connections round: the primary accepts
 *     accept.js passed PORT         the primary accepts, and sends each descriptor itself
 */
import cluster from 'node:cluster';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

const WORKERS = 2;
const BACKLOG = 4096;
const [way, port] = [process.argv[2], Number(process.argv[3])];
const where = { port, host: '127.0.0.1', backlog: BACKLOG };

/** Answers as little as a stream needs. @param {import('node:net').Socket} socket */
function keep(socket) {
  socket.on('error', () => socket.destroy());
  socket.on('data', (data) => {
    if (data.toString('latin1', 0, 6) === 'GET / ')
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n');
    else socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
  });
  socket.resume();
}

function startWorkers() {
  cluster.schedulingPolicy = way === 'shared' ? cluster.SCHED_NONE : cluster.SCHED_RR;
  cluster.setupPrimary({ exec: fileURLToPath(import.meta.url), args: [way, String(port)] });
  return Array.from({ length: WORKERS }, () => cluster.fork());
}

/** The primary's own server: sockets are paused, so that no byte of theirs is read here. */
function pass() {
  const workers = startWorkers();
  let turn = 0;
  createServer({ pauseOnConnect: true }, (socket) => {
    workers[turn++ % WORKERS].send({ type: 'connection' }, socket);
  }).listen(where);
}

if (way === 'alone') createServer(keep).listen(where);
else if (cluster.isPrimary) way === 'passed' ? pass() : startWorkers();
else {
  process.on('disconnect', () => process.exit(0));
  if (way === 'passed')
    process.on('message', (_, socket) => socket && keep(/** @type {import('node:net').Socket} */ (socket)));
  else createServer(keep).listen(where);
}
