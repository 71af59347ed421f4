import { describe, expect, it } from 'vitest';
import { LogBuffer, PIECE_BYTES } from './buffer.ts';
import { compile } from './search.ts';
import { encode, ORIGIN, randomFrom, stamped } from './testing.ts';
import { EVERYTHING, View, type Filter } from './view.ts';

const matcher = () => compile({ text: 'hit', isRegex: false, matchCase: true });

function rowsOf(view: View): string[] {
  return Array.from({ length: view.total }, (_, row) => {
    const { source, line } = view.at(row);
    return `${source}:${line}`;
  });
}

function hitsOf(view: View): number[] {
  return [...view.hits.values.subarray(0, view.hits.length)];
}

describe('a view', () => {
  it('shows only lines that match, with lines around them', () => {
    const log = new LogBuffer(ORIGIN);
    for (let line = 0; line < 20; line++) log.append(encode(stamped(line, [5, 8, 19].includes(line) ? 'hit' : 'miss')));
    const view = new View([log], matcher(), { ...EVERYTHING, context: 1 });
    view.update();
    expect(rowsOf(view)).toEqual([4, 5, 6, 7, 8, 9, 18, 19].map((line) => `0:${line}`));
    expect(hitsOf(view)).toEqual([1, 4, 7]);
  });

  it('shows a range of time, and at least a level', () => {
    const log = new LogBuffer(ORIGIN);
    for (let line = 0; line < 20; line++) log.append(encode(stamped(line, line % 5 === 0 ? 'ERROR' : line % 5 === 1 ? 'WARN' : 'info')));
    const timed = new View([log], null, { ...EVERYTHING, from: 5, to: 12, level: 1 });
    timed.update();
    expect(rowsOf(timed)).toEqual(['0:5', '0:6', '0:10', '0:11']);
  });

  it('is the same whether lines come one by one or all at once', () => {
    const random = randomFrom(21);
    const filters: Filter[] = [EVERYTHING, { ...EVERYTHING, context: 0 }, { ...EVERYTHING, context: 2 }, { ...EVERYTHING, context: 1, from: 100, to: 700 }, { ...EVERYTHING, level: 2, context: 1 }];
    for (let round = 0; round < 40; round++) {
      const logs = Array.from({ length: 1 + Math.floor(random() * 4) }, () => new LogBuffer(ORIGIN));
      const clocks = logs.map(() => 0);
      const views = filters.map((filter) => new View(logs, matcher(), filter));
      for (let step = 0; step < 30; step++) {
        for (let count = Math.floor(random() * 12); count > 0; count--) {
          const source = Math.floor(random() * logs.length);
          clocks[source]! += Math.floor(random() ** 3 * 60);
          const text = random() < 0.15 ? 'hit' : random() < 0.1 ? 'ERROR hit' : 'miss';
          const line = stamped(clocks[source]!, text);
          // Sometimes a line has not ended when the view is made.
          const cut = random() < 0.3 ? line.length - 3 : line.length;
          if (logs[source]!.isOpen) logs[source]!.append(encode('\n'));
          logs[source]!.append(encode(line.slice(0, cut)));
        }
        for (const view of views) view.update();
      }
      for (const log of logs) log.finish();
      views.forEach((view, index) => {
        view.update();
        const fresh = new View(logs, matcher(), filters[index]!);
        fresh.update();
        expect(rowsOf(view)).toEqual(rowsOf(fresh));
        expect(hitsOf(view)).toEqual(hitsOf(fresh));
      });
    }
  });

  it('uses the marks of a view with the same search, also while that one is still shown', () => {
    const log = new LogBuffer(ORIGIN);
    const one = matcher();
    const before = new View([log], one);
    for (let line = 0; line < 50; line++) log.append(encode(stamped(line, line % 7 ? 'miss' : 'hit')));
    before.update();
    const after = new View([log], one, { ...EVERYTHING, context: 0 }, before);
    expect(after.isScanned).toBe(true);
    after.update();
    log.append(encode(stamped(50, 'hit')));
    before.update();
    after.update();
    expect(rowsOf(after)).toEqual([0, 7, 14, 21, 28, 35, 42, 49, 50].map((line) => `0:${line}`));
    expect(hitsOf(before)).toEqual([0, 7, 14, 21, 28, 35, 42, 49, 50]);
  });

  it('finds its rows again after lines were dropped', () => {
    const log = new LogBuffer(ORIGIN);
    for (let line = 0; line < 400; line++) log.append(encode(stamped(line, `${line % 3 ? 'miss' : 'hit'}${' '.repeat(PIECE_BYTES / 100)}`)));
    const view = new View([log], matcher(), { ...EVERYTHING, context: 0 });
    view.update();
    const before = view.find(0, 300);
    log.drop();
    view.update();
    expect(view.at(view.find(0, 300))).toEqual({ source: 0, line: 300 });
    expect(view.find(0, 300)).toBeLessThan(before);
    expect(rowsOf(view)).toEqual(Array.from({ length: 400 }, (_, line) => line).filter((line) => line >= log.first && line % 3 === 0).map((line) => `0:${line}`));
  });
});
