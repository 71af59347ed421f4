import { describe, expect, it } from 'vitest';
import { LogBuffer, PIECE_BYTES } from './buffer.ts';
import { formatStamp } from './stamps.ts';
import { encode, linesOf, logOf, ORIGIN, randomFrom, stamped } from './testing.ts';

const HOSTILE = [
  encode(stamped(1, 'plain')),
  encode(stamped(2, '')),
  encode('no stamp at all\n'),
  encode('\n'),
  encode(`${formatStamp(3, ORIGIN)}\n`),
  encode(stamped(4, 'with \x1b[31mred\x1b[0m and \x1b]8;;http://x\x07link')),
  Uint8Array.of(...encode(formatStamp(5, ORIGIN)), 32, 0xff, 0xfe, 0x80, 0xc3, 10),
  encode(stamped(6, '\u202egnp.exe\u2066 \u0085 \ufeff')),
  encode(stamped(7, '10%\r20%\r100%')),
  encode(stamped(8, '日志 🚀')),
  encode(stamped(8, formatStamp(1, ORIGIN))),
];

function joined(): Uint8Array {
  const whole = new Uint8Array(HOSTILE.reduce((size, line) => size + line.length, 0));
  let at = 0;
  for (const line of HOSTILE) {
    whole.set(line, at);
    at += line.length;
  }
  return whole;
}

/** As text, which is quicker to compare. */
function contents(log: LogBuffer): string {
  const all: string[] = [];
  for (let line = log.first; line < log.end; line++) all.push([log.stamp(line), log.times.at(line), ...log.bytes(line)].join());
  return all.join('\n');
}

describe('a log', () => {
  it('is cut into lines without their stamps', () => {
    const log = logOf(stamped(1, 'one'), stamped(2.5e9, 'two words'), 'without a stamp\n');
    expect(linesOf(log)).toEqual(['one', 'two words', 'without a stamp']);
    expect([log.stamp(0), log.stamp(1), log.stamp(2)]).toEqual([1, 2.5e9, NaN]);
    expect(log.times.at(2)).toBe(2.5e9);
  });

  it('is the same wherever its bytes are cut', () => {
    const whole = joined();
    const expected = contents(logOf(whole));
    expect(expected.split('\n')).toHaveLength(HOSTILE.length);
    for (let cut = 0; cut <= whole.length; cut++)
      expect(contents(logOf(whole.subarray(0, cut), whole.subarray(cut)))).toBe(expected);
    expect(contents(logOf(...[...whole].map((byte) => Uint8Array.of(byte))))).toBe(expected);
  });

  it('is the same after a cut at any byte and a resumption from the last whole line', () => {
    const whole = joined();
    const expected = contents(logOf(whole));
    for (let cut = 0; cut <= whole.length; cut++) {
      const log = logOf(whole.subarray(0, cut));
      log.resume();
      // The server begins again somewhere before the stamp of the last whole line, here at the beginning.
      log.append(whole);
      expect(contents(log), `cut at ${cut}`).toBe(expected);
    }
  });

  it('keeps lines that share the stamp at which a resumption begins', () => {
    const lines = ['a', 'b', 'c', 'd'].map((text) => stamped(7, text));
    for (let seen = 0; seen <= 4; seen++) {
      const log = logOf(stamped(6, 'before'), ...lines.slice(0, seen));
      log.resume();
      log.append(encode([...lines, stamped(8, 'after')].join('')));
      expect(linesOf(log)).toEqual(['before', 'a', 'b', 'c', 'd', 'after']);
    }
  });

  it('shows a line that has not ended, and goes on with it', () => {
    const log = logOf(`${formatStamp(1, ORIGIN)} Loading`);
    expect([linesOf(log), log.complete]).toEqual([['Loading'], 0]);
    log.append(encode(' … done'));
    expect(linesOf(log)).toEqual(['Loading … done']);
    log.finish();
    expect([linesOf(log), log.complete]).toEqual([['Loading … done'], 1]);
  });

  it('takes one line of ten megabytes, in small chunks', () => {
    const log = logOf(stamped(1, 'before'), `${formatStamp(2, ORIGIN)} `);
    const chunk = encode('x'.repeat(65536));
    for (let count = 0; count < 160; count++) log.append(chunk);
    log.append(encode('\n' + stamped(3, 'after')));
    expect(log.bytes(1)).toHaveLength(160 * 65536);
    expect([linesOf(log)[0], linesOf(log)[2]]).toEqual(['before', 'after']);
  });

  it('never goes back in time for merging, and still tells each stamp as it was', () => {
    const log = logOf(stamped(5, 'a'), stamped(3, 'clock set back'), stamped(6, 'c'));
    expect([0, 1, 2].map((line) => log.times.at(line))).toEqual([5, 5, 6]);
    expect([0, 1, 2].map((line) => log.stamp(line))).toEqual([5, 3, 6]);
  });

  it('drops its oldest piece and keeps the numbers of its lines', () => {
    const log = new LogBuffer(ORIGIN);
    const text = 'y'.repeat(1000);
    const count = Math.ceil((3 * PIECE_BYTES) / 1000);
    for (let line = 0; line < count; line++) log.append(encode(stamped(line, `${line} ${text}`)));
    const { size } = log;
    const freed = log.drop();
    expect(log.size).toBe(size - freed);
    expect(log.first).toBe(log.dropped);
    expect(log.first).toBeGreaterThan(900);
    for (const line of [log.first, log.first + 1, log.end - 1]) {
      expect(new TextDecoder().decode(log.bytes(line))).toBe(`${line} ${text}`);
      expect(log.stamp(line)).toBe(line);
    }
    while (log.drop() > 0);
    expect(log.pieces).toHaveLength(1);
  });

  it('holds random lines in random chunks', () => {
    const random = randomFrom(7);
    for (let round = 0; round < 30; round++) {
      const lines = Array.from({ length: 200 }, (_, index) => `${index}:${'z'.repeat(Math.floor(random() ** 4 * 9000))}`);
      const whole = encode(lines.map((text, index) => stamped(index * 1000, text)).join(''));
      const log = new LogBuffer(ORIGIN);
      for (let at = 0; at < whole.length; ) {
        const size = 1 + Math.floor(random() ** 3 * 50000);
        log.append(whole.subarray(at, at + size));
        at += size;
      }
      expect(linesOf(log)).toEqual(lines);
    }
  });
});
