/*
 * The topics that one connection of the publisher publishes to, in turn. Names and numbers are made when they are needed, so a
 * million topics take no memory. Pure.
 */

/**
 * @typedef {object} Series
 * @property {string} topic template with {n}
 * @property {number} topics how many: {n} is 0, 1, 2, …
 * @property {number} [step] or {n} is 0, `step`, 2 * `step`, …
 * @property {number} [streams] of all these topics together: stream n is on topic n % topics
 */

export class Turns {
  /** @param {Series} series @param {number} lane of the connection, from 0 @param {number} lanes no more than topics */
  constructor({ topic, topics, step = 1, streams = 0 }, lane, lanes) {
    this.topic = topic;
    this.topics = topics;
    this.step = step;
    this.streams = streams;
    this.lane = lane;
    this.lanes = lanes;
    this.place = lane;
    this.number = 1;
  }

  /** @returns {{ name: string, number: number, streams: number }} `number`: of the publication, among those to this topic; `streams`: that get it */
  next() {
    const { topic, place, number, topics, step } = this;
    this.place += this.lanes;
    if (this.place >= topics) {
      this.place = this.lane;
      this.number++;
    }
    const streams = Math.ceil(Math.max(0, this.streams - place) / topics);
    return { name: topic.replace('{n}', String(place * step)), number, streams };
  }
}
