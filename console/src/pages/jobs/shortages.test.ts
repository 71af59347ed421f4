import { expect, it } from 'vitest';
import { percent, readProgress } from './progress.ts';
import { words as zh } from '../../locales/zh/index.ts';
import { resourceName, shortagesIn } from './shortages.ts';

it('reads amounts where the scheduler gives them', () => {
  expect(shortagesIn('pod x: 0/1 nodes are available: 1 Insufficient memory (32Gi asked, 23.17Gi of 23.54Gi free), 1 Insufficient nvidia.com/gpu (4 asked, 2 of 2 free); it can never run here')).toEqual([
    { resource: 'memory', asked: '32Gi', free: '23.17Gi', total: '23.54Gi' },
    { resource: 'nvidia.com/gpu', asked: '4', free: '2', total: '2' },
  ]);
  expect(shortagesIn('0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3')).toEqual([{ resource: 'nvidia.com/gpu', asked: '', free: '', total: '' }]);
  expect(shortagesIn('pod x (and 1 more): waits behind others for memory (4Gi asked), nvidia.com/gpu (2 asked)')).toEqual([
    { resource: 'memory', asked: '4Gi', free: '', total: '' },
    { resource: 'nvidia.com/gpu', asked: '2', free: '', total: '' },
  ]);
  expect(shortagesIn('the image is being built')).toEqual([]);
});

it('reads progress, and nothing from what is none', () => {
  expect(percent(readProgress({ unit: 'epoch', done: 7, total: 12 })!)).toBe(58);
  expect([null, undefined, 'x', { done: 1 }, { done: 1, total: 0 }].map(readProgress)).toEqual([null, null, null, null, null]);
});

it('resources of Kubernetes have words, devices keep their names', () => {
  expect(resourceName('memory', zh.jobs.resources)).toBe('内存');
  expect(resourceName('nvidia.com/gpu', zh.jobs.resources)).toBe('nvidia.com/gpu');
  expect(resourceName('constructor', zh.jobs.resources)).toBe('constructor');
});
