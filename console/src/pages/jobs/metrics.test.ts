import { expect, it } from 'vitest';
import { metricIn, progressIn, sparkline } from './metrics.ts';

it.each([
  ['epoch 3/12  loss 0.1', 'epoch 3/12'],
  ['Epoch [3/12], Step [40/100]', 'epoch 3/12'],
  ['epoch: 3 / 12', 'epoch 3/12'],
  ['Epoch 3 of 12', 'epoch 3/12'],
  ['epoch 1/12\nepoch 2/12\n', 'epoch 2/12'],
  ['step 40/100', 'step 40/100'],
  ['2030/01/02 03:04', null],
  ['epoch 13/12', null],
  ['epoch 0/0', null],
])('progress in %j', (text, expected) => {
  const progress = progressIn(text);
  expect(progress && `${progress.unit} ${progress.done}/${progress.total}`).toBe(expected);
});

it('reads the metric that the log names most often', () => {
  expect(metricIn('epoch 1 loss 0.5 acc 0.1\nepoch 2 loss: 0.25 acc=0.2\nloss=1e-3')).toEqual({ name: 'loss', values: [0.5, 0.25, 0.001] });
  expect(metricIn('nothing here')).toBeNull();
});

it('draws values between the edges, and equal ones in the middle', () => {
  expect(sparkline([1, 3, 2], 20, 10)).toBe('0.0,10.0 10.0,0.0 20.0,5.0');
  expect(sparkline([2, 2], 20, 10)).toBe('0.0,5.0 20.0,5.0');
});
