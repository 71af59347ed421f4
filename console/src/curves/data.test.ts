import { describe, expect, it } from 'vitest';
import { bestIndex, groupByTag, lessIsBetter, patternOf, seriesOf, type Scalar } from './data.ts';

function scalar(tag: string, values: (number | string)[], more: Partial<Scalar> = {}): Scalar {
  const steps = values.map((_, index) => index + 1);
  const last = { step: values.length, time: 0, value: values.at(-1) ?? 0 };
  return { tag, count: values.length, last, steps, times: steps.map((step) => 1000 + step * 10), values, ...more };
}

describe('curves', () => {
  it('are grouped by metric, and a run has the same colour in every chart', () => {
    const groups = groupByTag([
      { name: 'a', scalars: [scalar('loss', [1])] },
      { name: 'b', scalars: [scalar('loss', [2]), scalar('acc', [3])] },
    ]);
    expect(groups.map(({ tag, lines }) => [tag, lines.map(({ name, colour }) => `${name}${colour}`)])).toEqual([
      ['acc', ['b1']],
      ['loss', ['a0', 'b1']],
    ]);
  });

  it('are drawn over steps, time since the start, or the clock', () => {
    const lines = [{ name: 'a', scalar: scalar('loss', [1, 2]), colour: 0 }];
    const xs = (axis: 'step' | 'elapsed' | 'time') => seriesOf(lines, { axis, smoothing: 0, isLog: false })[0]?.x;
    expect([xs('step'), xs('elapsed'), xs('time')]).toEqual([[1, 2], [0, 10], [1010, 1020]]);
  });

  it('are smoothed before the measured values', () => {
    const series = seriesOf([{ name: 'a', scalar: scalar('loss', [0, 1]), colour: 0 }], { axis: 'step', smoothing: 0.5, isLog: false });
    expect(series.map((line) => [line.isFaint === true, line.y])).toEqual([[true, [0, 1]], [false, [0, 0.5 / 0.75]]]);
  });

  it('have a gap where a value is no number, and one point per step', () => {
    const lines = [{ name: 'a', scalar: scalar('loss', [1, 'NaN', 3], { steps: [1, 2, 2] }), colour: 0 }];
    expect(seriesOf(lines, { axis: 'step', smoothing: 0, isLog: false })[0]).toMatchObject({ x: [1, 2], y: [1, 3] });
  });
});

describe('the best value', () => {
  it('is the lowest loss and the highest accuracy', () => {
    expect(['val_loss', 'train/Loss', 'testAccuracy', 'F1', 'lr'].map(lessIsBetter)).toEqual([true, true, false, false, null]);
    expect(bestIndex('loss', [3, null, 1, 2])).toBe(2);
    expect(bestIndex('accuracy', [3, null, 1, 2])).toBe(0);
    expect(bestIndex('lr', [1, 2])).toBeNull();
  });
});

it('a pattern that cannot be read is none', () => {
  expect(patternOf('digits-.*')?.test('Digits-4')).toBe(true);
  expect(patternOf('(')).toBeNull();
});
