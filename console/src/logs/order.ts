// The lines of several logs in one order: by time, then by log, and never against the order within a log.

import type { LogBuffer } from './buffer.ts';

/** At most this many logs are merged: a log's number is one byte, and a tab follows no more. */
export const MAX_LOGS = 24;

export class Order {
  /** Per position: which log, and which of its lines. */
  source = new Uint8Array(1024);
  line = new Uint32Array(1024);
  length = 0;
  /** The next line of each log that has no position yet. */
  #cursors: number[];
  #firsts: number[];

  constructor(readonly logs: readonly LogBuffer[]) {
    if (logs.length > MAX_LOGS) throw new RangeError(`at most ${MAX_LOGS} logs can be merged`);
    this.#cursors = logs.map((log) => log.first);
    this.#firsts = [...this.#cursors];
  }

  /** Take over what the logs have got or lost, and return the first position that is new or has changed. */
  update(): number {
    const cut = this.#hasDropped() ? this.#restart() : this.#cut();
    this.#merge();
    return cut;
  }

  /** The first position whose line is not before line `line` of log `source`, both with their times. */
  find(source: number, line: number): number {
    const time = this.logs[source]!.times.at(line);
    return this.#bound((position) => this.#compare(position, time, source, line) < 0);
  }

  /** The first position at or after a time. */
  findTime(time: number): number {
    return this.#bound((position) => this.time(position) < time);
  }

  time(position: number): number {
    return this.logs[this.source[position]!]!.times.at(this.line[position]!);
  }

  #compare(position: number, time: number, source: number, line: number): number {
    const other = this.time(position);
    if (other !== time) return other - time;
    return this.source[position]! - source || this.line[position]! - line;
  }

  #bound(isBefore: (position: number) => boolean): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(middle)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #hasDropped(): boolean {
    return this.logs.some((log, source) => log.first !== this.#firsts[source]);
  }

  #restart(): number {
    this.#firsts = this.logs.map((log) => log.first);
    this.#cursors = [...this.#firsts];
    this.length = 0;
    return 0;
  }

  /** Give up all positions behind the earliest new line. */
  #cut(): number {
    let cut = this.length;
    this.logs.forEach((log, source) => {
      const line = this.#cursors[source]!;
      if (line >= log.end || cut === 0) return;
      const time = log.times.at(line);
      if (this.#compare(cut - 1, time, source, line) <= 0) return;
      cut = this.find(source, line);
    });
    for (let position = this.length - 1; position >= cut; position--) this.#cursors[this.source[position]!]!--;
    this.length = cut;
    return cut;
  }

  #merge(): void {
    const { logs } = this;
    let missing = 0;
    for (const [source, log] of logs.entries()) missing += log.end - this.#cursors[source]!;
    this.#reserve(this.length + missing);
    const next = logs.map((log, source) => timeAt(log, this.#cursors[source]!));
    while (missing > 0) {
      let best = 0;
      let second = 0;
      for (let source = 1; source < next.length; source++) if (next[source]! < next[best]!) best = source;
      // How far the best log may go on until another one has an earlier line.
      let limit = Infinity;
      for (let source = 0; source < next.length; source++) {
        if (source === best || next[source]! >= limit) continue;
        limit = next[source]!;
        second = source;
      }
      missing -= this.#take(best, limit, best < second, next);
    }
  }

  /** Take lines of one log while they are before `limit` (or at it, if `isFirst`); return how many. */
  #take(source: number, limit: number, isFirst: boolean, next: number[]): number {
    const log = this.logs[source]!;
    const { values, first, end } = log.times;
    const begin = this.#cursors[source]!;
    let line = begin;
    let position = this.length;
    do {
      this.source[position] = source;
      this.line[position++] = line++;
    } while (line < end && (values[line - first]! < limit || (isFirst && values[line - first]! === limit)));
    this.length = position;
    this.#cursors[source] = line;
    next[source] = timeAt(log, line);
    return line - begin;
  }

  #reserve(length: number): void {
    if (length <= this.line.length) return;
    const capacity = Math.max(length, this.line.length * 2);
    const [source, line] = [new Uint8Array(capacity), new Uint32Array(capacity)];
    source.set(this.source.subarray(0, this.length));
    line.set(this.line.subarray(0, this.length));
    [this.source, this.line] = [source, line];
  }
}

/** The time of a line for merging; after all others when the log has no more. */
function timeAt(log: LogBuffer, line: number): number {
  return line < log.end ? log.times.at(line) : Infinity;
}
