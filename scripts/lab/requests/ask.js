/*
 * Asks a server the questions before it is measured, and compares its answers byte by byte.
 */
import { connect } from 'node:net';
import { HoldfastError, messageOf } from '../../../lib/errors.js';
import { differences, expectedAnswer, parseAnswer, questions } from './answers.js';

const ANSWER_MS = 5000;

/** @typedef {import('./answers.js').Answer} Answer */

/**
 * @param {string} name of the server @param {number} port
 * @param {boolean} closes whether it ends the connection after each answer; otherwise all questions share one connection
 * @param {boolean} [isSilent] whether answers don't say that it goes on
 * @throws {HoldfastError} ANSWER with what is wrong
 */
export async function checkAnswers(name, port, closes, isSilent) {
  const asked = questions();
  const targets = asked.map(({ target }) => target);
  const answers = closes ? await eachAlone(port, targets) : await askAll(port, targets, false);
  const problems = asked.flatMap((question, i) =>
    differences(answers[i], expectedAnswer(question, closes, isSilent)).map(
      (text) => `${question.target}: ${text}`,
    ),
  );
  const [{ status }] = await askAll(port, ['/other'], closes);
  if (!status.startsWith('HTTP/1.1 404 ')) problems.push(`/other: ${status}, not 404`);
  if (problems.length > 0)
    throw new HoldfastError('ANSWER', `${name} answers wrongly: ${problems.join('; ')}`);
}

/** @param {number} port @param {string[]} targets */
async function eachAlone(port, targets) {
  const answers = [];
  for (const target of targets) answers.push(...(await askAll(port, [target], true)));
  return answers;
}

/**
 * One question after the other on one connection.
 * @param {number} port @param {string[]} targets
 * @param {boolean} untilEnd whether to wait until the server has closed it; what it sends after an answer then belongs to it
 * @returns {Promise<Answer[]>}
 * @throws {HoldfastError} ANSWER
 */
export async function askAll(port, targets, untilEnd) {
  const socket = connect(port, '127.0.0.1');
  socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error(`no answer within ${ANSWER_MS / 1000} s`)));
  try {
    return await conversation(socket, targets, untilEnd);
  } catch (error) {
    throw new HoldfastError('ANSWER', `asked for ${targets.join(', ')}: ${messageOf(error)}`);
  } finally {
    socket.destroy();
  }
}

/** @param {import('node:net').Socket} socket @param {string[]} targets @param {boolean} untilEnd */
async function conversation(socket, targets, untilEnd) {
  const left = [...targets];
  const ask = () => socket.write(`GET ${left[0]} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  /** @type {Answer[]} */
  const answers = [];
  let received = Buffer.alloc(0);
  ask();
  for await (const data of socket) {
    received = Buffer.concat([received, data]);
    const answer = untilEnd ? null : parseAnswer(received);
    if (!answer) continue;
    answers.push(answer);
    received = Buffer.alloc(0);
    left.shift();
    if (left.length === 0) return answers;
    ask();
  }
  const last = parseAnswer(received);
  if (!untilEnd || !last) throw new Error('the connection ended too early');
  return [last];
}
