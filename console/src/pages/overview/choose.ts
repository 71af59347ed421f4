/** Which jobs the overview shows. */
import type { Row } from '../../app/rows.ts';

const RECENT = 24 * 3600 * 1000;

/** Jobs that failed within a day, or wait for something; failures first, then whatever has waited longest. */
export function needAttention(rows: readonly Row[], now: number): Row[] {
  const failed = rows.filter((row) => row.phase === 'Failed' && now - timeOf(row) < RECENT);
  const unknown = rows.filter((row) => row.phase === 'Unknown');
  const waiting = rows.filter((row) => row.phase === 'Pending' && row.reason !== '');
  return [
    ...failed.sort((one, other) => timeOf(other) - timeOf(one)),
    ...unknown,
    ...waiting.sort((one, other) => Date.parse(one.created) - Date.parse(other.created)),
  ];
}

const ACTIVE = ['Running', 'Resuming', 'Pending', 'Paused'];

/** Jobs that run, start or are paused, the newest first; running ones before the others. */
export function underWay(rows: readonly Row[]): Row[] {
  return rows
    .filter((row) => ACTIVE.includes(row.phase) && !(row.phase === 'Pending' && row.reason !== ''))
    .sort((one, other) => ACTIVE.indexOf(one.phase) - ACTIVE.indexOf(other.phase) || (one.created < other.created ? 1 : -1));
}

function timeOf(row: Row): number {
  return Date.parse(row.ended || row.created);
}
