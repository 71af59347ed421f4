import { describe, expect, it } from 'vitest';
import { LogBuffer, PIECE_BYTES } from './buffer.ts';
import { MAX_LOGS, Order } from './order.ts';
import { encode, ORIGIN, randomFrom, stamped } from './testing.ts';

function positions(order: Order): [number, number][] {
  return Array.from({ length: order.length }, (_, index) => [order.source[index]!, order.line[index]!]);
}

/** What a merge must give: sorted by time, log and line. */
function expected(logs: LogBuffer[]): [number, number][] {
  const all: [number, number, number][] = [];
  logs.forEach((log, source) => {
    for (let line = log.first; line < log.end; line++) all.push([log.times.at(line), source, line]);
  });
  all.sort((one, other) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2]);
  return all.map(([, source, line]) => [source, line]);
}

describe('the order of several logs', () => {
  it('is by time, then by log, and stable within a log', () => {
    const logs = [new LogBuffer(ORIGIN), new LogBuffer(ORIGIN)];
    logs[0]!.append(encode(stamped(1, 'a') + stamped(3, 'b') + stamped(3, 'c')));
    logs[1]!.append(encode(stamped(2, 'd') + stamped(3, 'e') + stamped(4, 'f')));
    const order = new Order(logs);
    expect(order.update()).toBe(0);
    expect(positions(order)).toEqual([[0, 0], [1, 0], [0, 1], [0, 2], [1, 1], [1, 2]]);
  });

  it('is the same whether logs come whole or in any pieces, and tells where it has changed', () => {
    const random = randomFrom(3);
    for (let round = 0; round < 20; round++) {
      const logs = Array.from({ length: 1 + Math.floor(random() * 6) }, () => new LogBuffer(ORIGIN));
      const clocks = logs.map(() => 0);
      const order = new Order(logs);
      for (let step = 0; step < 40; step++) {
        const before = positions(order);
        for (let count = Math.floor(random() * 20); count > 0; count--) {
          const source = Math.floor(random() * logs.length);
          clocks[source]! += Math.floor(random() ** 3 * 40);
          logs[source]!.append(encode(stamped(clocks[source]!, 'line')));
        }
        const cut = order.update();
        // Compared as text, which is much quicker than as arrays.
        expect(positions(order).join(' ')).toBe(expected(logs).join(' '));
        expect(positions(order).slice(0, cut).join(' ')).toBe(before.slice(0, cut).join(' '));
      }
    }
  });

  it('forgets lines that were dropped', () => {
    const logs = [new LogBuffer(ORIGIN), new LogBuffer(ORIGIN)];
    const text = 'x'.repeat(PIECE_BYTES / 64);
    for (let line = 0; line < 200; line++) logs[line % 2]!.append(encode(stamped(line, text)));
    const order = new Order(logs);
    order.update();
    expect(logs[1]!.drop()).toBeGreaterThan(0);
    expect(order.update()).toBe(0);
    expect(positions(order)).toEqual(expected(logs));
  });

  it('finds lines and times', () => {
    const logs = [new LogBuffer(ORIGIN), new LogBuffer(ORIGIN)];
    for (let line = 0; line < 50; line++) logs[line % 2]!.append(encode(stamped(Math.floor(line / 3) * 10, 'x')));
    const order = new Order(logs);
    order.update();
    positions(order).forEach(([source, line], index) => expect(order.find(source, line)).toBe(index));
    expect([order.findTime(0), order.findTime(5), order.findTime(10), order.findTime(1e9)]).toEqual([0, 3, 3, 50]);
  });

  it('takes no more logs than a tab may follow', () => {
    expect(() => new Order(Array.from({ length: MAX_LOGS + 1 }, () => new LogBuffer(ORIGIN)))).toThrow(RangeError);
  });
});
