import { describe, expect, it } from 'vitest';
import { countRoles, filterContainers, isFinished, lastEvents, loggedRevisions, logSources, valueRows } from './rows.ts';
import type { AppContainer, AppLog, AppService, AppView } from './view.ts';

const service = (name: string, role: string, state: string) => ({ name, role, state }) as AppService;

describe('services', () => {
  const services = [service('ps-0', 'ps', 'Running'), service('worker-0', 'worker', 'Succeeded'), service('worker-1', 'worker', 'Running')];
  it('that failed are counted as failed', () => {
    expect(countRoles([service('worker-0', 'worker', 'Failed')])).toEqual([{ role: 'worker', services: 1, running: 0, ended: 0, failed: 1 }]);
  });
  it('are counted by role', () => {
    expect(countRoles(services)).toEqual([
      { role: 'ps', services: 1, running: 1, ended: 0, failed: 0 },
      { role: 'worker', services: 2, running: 1, ended: 1, failed: 0 },
    ]);
  });
  it('say that a training is over when all workers have ended', () => {
    expect(isFinished(services)).toBe(false);
    expect(isFinished([...services.slice(0, 2), service('worker-1', 'worker', 'Stopped')])).toBe(true);
    expect(isFinished([])).toBe(false);
  });
});

describe('containers', () => {
  const row = (service: string, container: string, isStage = false) => ({ service, container, pod: `p-${service}`, image: 'python:3', node: 'vm', isStage }) as AppContainer;
  const rows = [row('worker-0', 'tensorflow'), row('worker-0', 'paceline-clone', true), row('tensorboard', 'tensorboard')];
  it('are found by any of their names, stages only when they are asked for', () => {
    expect(filterContainers(rows, '', false)).toHaveLength(2);
    expect(filterContainers(rows, 'WORKER', true)).toHaveLength(2);
    expect(filterContainers(rows, 'p-tensorboard', true)).toHaveLength(1);
  });
});

describe('values', () => {
  it('stand beside their defaults', () => {
    const rows = valueRows({
      written: {},
      effective: { git: { url: 'u' }, workers: 2, rate: '0.1', env: {}, data: { claim: '' } },
      defaults: { workers: 1, rate: 0.1, env: {}, data: { claim: '' } },
    });
    expect(rows).toEqual([
      { path: 'workers', value: 2, initial: 1, isChanged: true },
      { path: 'rate', value: '0.1', initial: 0.1, isChanged: false },
      { path: 'env', value: {}, initial: {}, isChanged: false },
      { path: 'data.claim', value: '', initial: '', isChanged: false },
      { path: 'git.url', value: 'u', initial: undefined, isChanged: true },
    ]);
  });
});

describe('logs', () => {
  const log = (replica: string, revision: number | null, isStage = false) =>
    ({ replica, revision, isStage, attempt: 0, pod: `${replica}-${revision}`, uid: 'u', container: 'c', exists: true, ended: null }) as AppLog;
  const logs = [log('worker-0', 2), log('worker-1', 2), log('worker-0', 2, true), log('worker-0', 1), log('tensorboard', null)];
  it('are those of one revision, with TensorBoards aside', () => {
    expect(loggedRevisions(logs)).toEqual([2, 1]);
    const sources = logSources({ namespace: 'default', logs }, 2);
    expect(sources.map(({ pod, color, auxiliary }) => [pod, color, auxiliary ?? false])).toEqual([
      ['worker-0-2', 0, false],
      ['worker-1-2', 1, false],
      ['worker-0-2', 0, true],
      ['tensorboard-null', 2, true],
    ]);
  });
});

it('the last events leave out what pods usually do, and the pods of TensorBoards', () => {
  const event = (object: string, type = 'Normal') => ({ object, type }) as AppView['events'][number];
  const events = [event('TrainingApp/mnist'), event('Pod/mnist-1-abc-worker-0'), event('Pod/mnist-1-abc-worker-0', 'Warning'), event('Pod/mnist-70a20-0', 'Warning'), event('TensorBoard/mnist')];
  expect(lastEvents({ events, jobName: 'mnist-1' }, 8)).toEqual([events[4], events[2], events[0]]);
  expect(lastEvents({ events, jobName: 'mnist-1' }, 1)).toEqual([events[4]]);
});
