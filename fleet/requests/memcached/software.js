/*
 * Asks a cache what it is, for the report.
 */
import { connect } from 'node:net';

/** A server that doesn't know the question may not answer at all. */
const ANSWER_MS = 500;
const MOST_BYTES = 65_536;

const QUESTIONS = {
  memcached: { text: 'version\r\n', answer: /^VERSION (.*)\r\n/, name: 'version' },
  redis: {
    text: '*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n',
    answer: /\r\nredis_version:(.*)\r\n/,
    name: 'redis',
  },
};

/** @param {import('./address.js').Address} address @returns {Promise<string>} such as 'version 1.6.18'; '' if it doesn't say */
export function softwareOf({ protocol, host, port, path }) {
  const { text, answer, name } = QUESTIONS[protocol];
  return new Promise((resolve) => {
    const socket = connect(path ? { path } : { host, port });
    let said = '';
    const end = (version = '') => {
      clearTimeout(timer);
      socket.destroy();
      resolve(version && `${name} ${version}`);
    };
    const timer = setTimeout(end, ANSWER_MS);
    socket.once('connect', () => socket.write(text));
    socket.on('data', (data) => {
      said += data.toString('latin1');
      const version = answer.exec(said)?.[1];
      if (version !== undefined || said.length > MOST_BYTES || /^(ERROR|-)/.test(said)) end(version);
    });
    socket.once('error', () => end());
    socket.once('close', () => end());
  });
}
