import { expect, it } from 'vitest';
import { causeUrl, logSources, logUrl } from './logs.ts';
import type { JobView, LogSource } from './view.ts';

const log = (part: Partial<LogSource>): LogSource => ({
  replica: 'worker-0', attempt: 0, pod: 'p', uid: 'u', node: 'n', container: 'pytorch', isStage: false, isLeader: true, isFailed: false,
  exists: true, isRunning: true, restarts: 0, started: null, ended: null, ...part,
});
const view = (logs: LogSource[]) =>
  ({ namespace: 'default', kind: 'MPIJob', name: 'ring', logs, cause: null, timeline: [{ replica: 'worker-0' }, { replica: 'worker-1' }] }) as unknown as JobView;

it('gives a replica its colour of the timeline, and marks what can grow no more', () => {
  const sources = logSources(view([log({}), log({ replica: 'worker-1', exists: false }), log({ replica: 'worker-1', isStage: true, ended: '2030-01-31T12:00:00Z' })]));

  expect(sources.map((source) => [source.color, source.ended, source.auxiliary ?? false])).toEqual([
    [0, false, false],
    [1, true, false],
    [1, true, true],
  ]);
});

it('links to one attempt of one replica, or to the stage that failed', () => {
  expect(logUrl(view([]), 'worker-1', 2)).toBe('/jobs/default/MPIJob/ring/logs?replicas=worker-1&attempt=2');
  expect(causeUrl(view([log({}), log({ isStage: true, container: 'paceline-clone', isFailed: true })]))).toBe('/jobs/default/MPIJob/ring/logs?replicas=worker-0%2Fpaceline-clone&attempt=0');
  expect(causeUrl(view([]))).toBe('/jobs/default/MPIJob/ring/logs');
});
