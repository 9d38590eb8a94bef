/*
 * The topics that the streams of a fleet subscribe to, and how many streams each of them has. Pure.
 */
import { fill, templateOf } from '../drone/topics/template.js';

/**
 * @param {string[]} texts templates of topics
 * @param {number} streams numbered from 0
 * @returns {Map<string, number>} the number of streams by topic, in the order of the first of them
 */
export function audienceOf(texts, streams) {
  const templates = texts.map((text) => templateOf(text) ?? []);
  /** @type {Map<string, number>} */
  const audience = new Map();
  for (let number = 0; number < streams; number++) {
    const topics = new Set(templates.map((template) => fill(template, { number })));
    for (const topic of topics) audience.set(topic, (audience.get(topic) ?? 0) + 1);
  }
  return audience;
}
