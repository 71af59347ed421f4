import { describe, expect, it } from 'vitest';
import { align, elapsedText, nearest, plainNumber, smooth, timeText } from './series.ts';

describe('the series of a chart', () => {
  it('are put on one common axis, in which a missing point is not a gap', () => {
    const columns = align([{ name: 'a', x: [1, 3], y: [10, 30] }, { name: 'b', x: [2, 3], y: [null, 5] }], false);
    expect(columns).toEqual([[1, 2, 3], [10, undefined, 30], [undefined, null, 5]]);
  });

  it('bring their band', () => {
    expect(align([{ name: 'a', x: [1], y: [2], low: [1], high: [3] }], false)).toEqual([[1], [2], [3], [1]]);
  });

  it('have gaps where a logarithmic axis cannot show a value, and where a value is not a number', () => {
    expect(align([{ name: 'a', x: [1, 2, 3, 4], y: [1, 0, -1, NaN] }], true)[1]).toEqual([1, null, null, null]);
    expect(align([{ name: 'a', x: [1, 2], y: [0, -1] }], false)[1]).toEqual([0, -1]);
  });

  it('are smoothed as TensorBoard does it: without a bias towards zero', () => {
    expect(smooth([2, 2, 2], 0.9).map((value) => value?.toFixed(6))).toEqual(['2.000000', '2.000000', '2.000000']);
    expect(smooth([0, 1], 0.5)).toEqual([0, 0.5 / 0.75]);
    expect(smooth([1, null, 3], 0)).toEqual([1, null, 3]);
    expect(smooth([1, null, 1], 0.5)).toEqual([1, null, 1]);
  });
});

describe('the figures of a chart', () => {
  it('are short', () => {
    expect([0, 0.12345678, 1234.5678, 12345678, 0.0000123].map(plainNumber)).toEqual(['0', '0.1235', '1234.57', '1.235e7', '1.23e-5']);
  });

  it('say times as exactly as the axis is', () => {
    const noon = new Date(2030, 0, 31, 12, 5, 9).getTime() / 1000;
    expect([timeText(noon, 86400), timeText(noon, 60), timeText(noon, 1)]).toEqual(['01-31', '12:05', '12:05:09']);
    expect([elapsedText(45), elapsedText(750), elapsedText(11100)]).toEqual(['45s', '12:30', '3:05:00']);
  });

  it('are those of the nearest point', () => {
    expect([nearest([], 1), nearest([1, 5, 9], 0), nearest([1, 5, 9], 6), nearest([1, 5, 9], 8), nearest([1, 5, 9], 99)]).toEqual([null, 0, 1, 2, 2]);
  });
});
