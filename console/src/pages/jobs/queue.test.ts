import { expect, it } from 'vitest';
import { words as en } from '../../locales/en/index.ts';
import { words as zh } from '../../locales/zh/index.ts';
import { placeIn, waitsForRoom } from './queue.ts';

it('finds the place of a job, and none of one that is not in the queue', () => {
  const view = { length: 1200, uids: ['a', 'b'] };
  expect(placeIn(view, 'b')).toEqual({ position: 2, length: 1200 });
  expect(placeIn(view, 'c')).toBeUndefined();
  expect(placeIn(undefined, 'a')).toBeUndefined();
});

it('asks for the place only of jobs that wait for room', () => {
  expect(waitsForRoom({ phase: 'Pending', reason: 'pod x: 0/1 nodes are available: 1 Insufficient memory' })).toBe(true);
  expect(waitsForRoom({ phase: 'Pending', reason: 'pod x: waits behind others for memory (1Gi asked)' })).toBe(true);
  expect(waitsForRoom({ phase: 'Pending', reason: 'the image is being built' })).toBe(false);
  expect(waitsForRoom({ phase: 'Failed', reason: '0/1 nodes are available: 1 Insufficient memory' })).toBe(false);
});

it('names places in both languages', () => {
  expect([1, 2, 3, 4, 11, 12, 13, 21, 102].map((position) => en.jobs.place(position, 200).split(' ')[0])).toEqual(['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '102nd']);
  expect(zh.jobs.place(3, 5)).toContain('3');
});
