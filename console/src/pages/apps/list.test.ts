import { expect, it } from 'vitest';
import { phaseOf, reasonOf, shownApps, type TrainingApp } from './list.ts';

const app = (name: string, updated: string, status: object = {}, template = 'model-training'): TrainingApp => ({
  metadata: { name, namespace: 'default', uid: name, creationTimestamp: '2030-01-01T00:00:00Z' },
  spec: { template: { name: template } },
  status: { phase: 'Running', updated, ...status },
});

const APPS = [app('a', '2030-01-02T00:00:00Z'), app('b', '2030-01-03T00:00:00Z', { phase: 'Failed', message: 'worker-0 failed' }), app('c', '', { updated: undefined }, 'tensorflow-training')];

it('the last changed application is first', () => expect(shownApps(APPS, '', '').map(({ metadata }) => metadata.name)).toEqual(['b', 'a', 'c']));
it('applications are found by name, template and phase', () => {
  expect(shownApps(APPS, 'TENSORFLOW', '').map(({ metadata }) => metadata.name)).toEqual(['c']);
  expect(shownApps(APPS, '', 'Failed').map(({ metadata }) => metadata.name)).toEqual(['b']);
});
it('an application says why it failed or waits', () => {
  expect(reasonOf(APPS[1]!)).toBe('worker-0 failed');
  expect(reasonOf(app('x', '', { waiting: 'needs a GPU' }))).toBe('needs a GPU');
  expect(reasonOf(app('x', '', { phase: 'Succeeded', waiting: 'old' }))).toBe('');
});
it('one without a status waits, and one that is being deleted stops', () => {
  expect(phaseOf({ metadata: { name: 'n', namespace: 'd', uid: 'u' } })).toBe('Pending');
  expect(phaseOf({ ...APPS[0]!, metadata: { ...APPS[0]!.metadata, deletionTimestamp: 'now' } })).toBe('Terminating');
});
