import { expect, test } from 'vitest';
import { manifestOf, replicaOf, shownRows, type HistoryRow, type JobRecord } from './rows.ts';

const row = (name: string, phase: string, created: string): HistoryRow =>
  ({ name, phase, created, kind: 'PyTorchTrainingJob', record: `${name}-1`, reason: '', app: '' }) as HistoryRow;

test('the latest job stands first, and every word must match', () => {
  const rows = [row('old', 'Failed', '2030-01-01'), row('new', 'Succeeded', '2030-01-02')];
  expect(shownRows(rows, '', '').map((entry) => entry.name)).toEqual(['new', 'old']);
  expect(shownRows(rows, 'OLD pytorch', '').map((entry) => entry.name)).toEqual(['old']);
  expect(shownRows(rows, '', 'Succeeded').map((entry) => entry.name)).toEqual(['new']);
});

test('a record has the manifest of its job', () => {
  const job = { apiVersion: 'batch.tensorstack.dev/v1beta1', kind: 'MPIJob', name: 'a', labels: {}, spec: { x: 1 } };
  const record = { metadata: { namespace: 'team' }, spec: { job } } as unknown as JobRecord;
  expect(manifestOf(record)).toEqual({ apiVersion: job.apiVersion, kind: 'MPIJob', metadata: { name: 'a', namespace: 'team' }, spec: { x: 1 } });
});

test('a pod is called by its replica', () => {
  expect(replicaOf('mnist-1f409-worker-0', 'mnist')).toBe('worker-0');
  expect(replicaOf('mnist-1f409-worker-1-r2', 'mnist')).toBe('worker-1');
});
