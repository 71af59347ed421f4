import { expect, it } from 'vitest';
import type { Row } from '../../app/rows.ts';
import { pairText } from './cells.tsx';
import { chosenColumns, rowActions, usefulColumns } from './columns.tsx';

const row = (part: Partial<Row>): Row => ({ devices: {}, queue: '', progress: null, ...part }) as Row;

it('leaves out columns in which no job has a value', () => {
  expect(usefulColumns([row({})], false)).not.toContain('queue');
  expect(usefulColumns([row({}), row({ queue: 'high', devices: { 'nvidia.com/gpu': 2 } })], false)).toEqual(expect.arrayContaining(['queue', 'devices']));
  expect(usefulColumns([], true)).toContain('namespace');
});

it('takes the columns of the URL before those that were chosen, and always has status and name', () => {
  expect(chosenColumns('kind,nonsense', ['queue'])).toEqual(['phase', 'name', 'kind']);
  expect(chosenColumns(null, ['queue'])).toEqual(['phase', 'name', 'queue']);
  expect(chosenColumns('nonsense,__proto__', ['queue'])).toEqual(['phase', 'name', 'queue']);
});

it('says a unit once', () => {
  expect(pairText(2 ** 27, 2 ** 28, true)).toBe('128/256 Mi');
  expect(pairText(2 ** 29, 2 ** 30, true)).toBe('512 Mi/1 Gi');
  expect(pairText(0.2, 0.4, false)).toBe('0.2/0.4');
  expect(pairText(4, 4, false)).toBe('4');
  expect(pairText(0, 0, false)).toBe('–');
});

it('offers what makes sense in a phase', () => {
  expect(rowActions('Failed')).not.toContain('pause');
  expect(rowActions('Paused')).toContain('resume');
  expect(rowActions('Running')).toEqual(expect.arrayContaining(['pause', 'stop']));
});
