import { describe, expect, it } from 'vitest';
import { formatStamp, parseStamp } from './stamps.ts';
import { ORIGIN, randomFrom } from './testing.ts';

describe('stamps', () => {
  it('are exact to the nanosecond within a hundred days of the origin', () => {
    const random = randomFrom(1);
    for (let round = 0; round < 2000; round++) {
      const time = Math.floor((random() - 0.5) * 2 * 8.6e15);
      expect(parseStamp(formatStamp(time, ORIGIN), ORIGIN)).toBe(time);
    }
  });

  it('agree with the calendar of JavaScript, leap years included', () => {
    for (let day = -20000; day < 60000; day += 37) {
      const text = new Date(day * 86400_000 + 3661_000).toISOString();
      expect(parseStamp(text, 0)).toBe((day * 86400 + 3661) * 1e9);
    }
  });

  it.each([
    ['2030-01-01T00:00:00Z', 0],
    ['2030-01-01T00:00:01.5Z', 1.5e9],
    ['2030-01-01T00:00:00.000000001Z', 1],
    ['2030-01-01T08:00:00.25+08:00', 0.25e9],
    ['2029-12-31T19:30:00-04:30', 0],
  ])('reads %s', (text, time) => expect(parseStamp(text, ORIGIN)).toBe(time));

  it.each(['', 'Z', '2030-01-01', '2030-01-01T00:00:00', '2030-01-01T00:00:00.5', '2030-0x-01T00:00:00Z', 'unable to retrieve container logs', '2030-01-01T00:00:00+8', '2030-01-01T00:00:00Zebra'])(
    'does not take %j for one',
    (text) => expect(parseStamp(text, ORIGIN)).toBeNaN(),
  );
});
