import { expect, it } from 'vitest';
import type { Row } from '../../app/rows.ts';
import { needAttention, underWay } from './choose.ts';

const NOW = Date.parse('2030-01-31T12:00:00Z');
const at = (hours: number) => new Date(NOW - hours * 3_600_000).toISOString();
const row = (name: string, phase: string, hours: number, reason = ''): Row => ({ name, phase, reason, created: at(hours), ended: phase === 'Failed' ? at(hours) : '' }) as Row;
const names = (rows: Row[]) => rows.map((entry) => entry.name);

const ROWS = [
  row('old failure', 'Failed', 48),
  row('older failure', 'Failed', 2, 'x'),
  row('newer failure', 'Failed', 1, 'x'),
  row('starting', 'Pending', 1),
  row('waits', 'Pending', 1, 'Insufficient cpu'),
  row('waits longer', 'Pending', 5, 'Insufficient cpu'),
  row('runs', 'Running', 3),
  row('runs since', 'Running', 9),
  row('paused', 'Paused', 1),
  row('done', 'Succeeded', 1),
];

it('shows what needs attention: fresh failures, then whatever waits longest', () => {
  expect(names(needAttention(ROWS, NOW))).toEqual(['newer failure', 'older failure', 'waits longer', 'waits']);
});

it('shows what is under way: running, starting, paused', () => {
  expect(names(underWay(ROWS))).toEqual(['runs', 'runs since', 'starting', 'paused']);
});
