#!/usr/bin/env node
/*
 * Step 1: the answers to everything that arrived together leave in one write.
 */
import { startStep } from './lines.js';

/** @type {Map<string, string>} */
const items = new Map();

/** @param {string[]} words @param {string} value */
function answerTo([name, ...words], value) {
  if (name === 'set') {
    items.set(words[0], `VALUE ${words[0]} ${words[1]} ${words[3]}\r\n${value}`);
    return words.at(-1) === 'noreply' ? '' : 'STORED\r\n';
  }
  if (name !== 'get') return 'ERROR\r\n';
  return `${words.map((key) => items.get(key) ?? '').join('')}END\r\n`;
}

startStep('batched.js', (socket) => {
  let input = '';
  socket.setEncoding('latin1');
  socket.on('data', (text) => {
    input += text;
    let answers = '';
    for (let lineEnd = input.indexOf('\n') + 1; lineEnd > 0; lineEnd = input.indexOf('\n') + 1) {
      const words = input.slice(0, lineEnd).trim().split(' ');
      const end = words[0] === 'set' ? lineEnd + Number(words[4]) + 2 : lineEnd;
      if (input.length < end) break;
      answers += answerTo(words, input.slice(lineEnd, end));
      input = input.slice(end);
    }
    if (answers) socket.write(answers, 'latin1');
  });
});
