/*
 * Two workers that keep connections, and three ways to get connections to them; or one process that does everything.
 *
 *     accept.js alone PORT          one process accepts and keeps them
 *     accept.js shared PORT         the workers accept on one shared socket
 *     accept.js round-robin PORT    node:cluster distributes connections: the primary accepts
 *     accept.js passed PORT         the primary accepts, and passes each descriptor to a worker
 */
import cluster from 'node:cluster';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

const WORKERS = 2;
const BACKLOG = 4096;
const [way, port] = [process.argv[2], Number(process.argv[3])];
const where = { port, host: '127.0.0.1', backlog: BACKLOG };

/** Answers with as little as a stream needs. @param {import('node:net').Socket} socket */
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

/** The primary's own server. Sockets are paused, so that nothing is read from them here. */
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
