// @vitest-environment happy-dom
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Row } from '../app/rows.ts';
import { words as en } from '../locales/en/index.ts';
import { words as zh } from '../locales/zh/index.ts';
import { addWatch, endsIn, MOST, readWatches, removeWatch, takeWatch, type Watch } from './store.ts';
import { sayEnd } from './Watcher.tsx';

const KEY = 'paceline.watches';
const job = (uid: string) => ({ uid, namespace: 'default', kind: 'MPIJob', name: `job-${uid}` });
const watch = (uid: string): Watch => ({ ...job(uid), since: 0 });
const row = (uid: string, phase: string, reason = '') => ({ ...job(uid), phase, reason }) as Row;
const stored = () => readWatches(localStorage.getItem(KEY), Date.now()).map(({ uid }) => uid);

beforeEach(() => localStorage.clear());

describe('the ends of watched jobs', () => {
  it('are those in a final phase', () => {
    const rows = [row('a', 'Running'), row('b', 'Failed', 'worker-0: exit code 1'), row('c', 'Succeeded'), row('d', 'Failed'), row('e', 'Paused')];

    const ends = endsIn(rows, ['a', 'b', 'c', 'e'].map(watch), new Set());

    expect(ends.map((end) => end.watch.uid)).toEqual(['b', 'c']);
  });

  it('are those that were deleted, once they were there', () => {
    const seen = new Set<string>();

    expect(endsIn([row('a', 'Running')], [watch('a'), watch('of-another-cluster')], seen)).toEqual([]);
    expect(endsIn([], [watch('a'), watch('of-another-cluster')], seen)).toEqual([{ watch: watch('a'), row: null }]);
  });

  it('are said in the words of the page and of the list', () => {
    expect(sayEnd({ watch: watch('a'), row: row('a', 'Failed', 'worker-0: exit code 1') }, en)).toEqual({ title: 'job-a is now Failed', detail: 'worker-0: exit code 1' });
    expect(sayEnd({ watch: watch('a'), row: row('a', 'Succeeded') }, zh).title).toContain(zh.common.phases.Succeeded);
    expect(sayEnd({ watch: watch('a'), row: null }, en)).toEqual({ title: 'job-a', detail: en.job.deleted });
  });
});

describe('the list of watches', () => {
  it('is kept in the browser, each job once', () => {
    addWatch(job('a'));
    addWatch(job('b'));
    addWatch(job('a'));

    expect(stored()).toEqual(['b', 'a']);
    expect(removeWatch('b')).toBe(true);
    expect(removeWatch('b')).toBe(false);
    expect(stored()).toEqual(['a']);
  });

  it('has a bound', () => {
    for (let number = 0; number < MOST + 3; number += 1) addWatch(job(String(number)));

    expect(stored()).toHaveLength(MOST);
    expect(stored()[0]).toBe('3');
  });

  it.each([null, '', '{', '{}', 'null', '[1, null, {"uid": 3}]', `[{"uid":"a","namespace":"","kind":"x","name":"x","since":0}]`])('is empty where %s is stored', (text) => {
    expect(readWatches(text, 0)).toEqual([]);
  });

  it('forgets jobs that were not seen for a month', () => {
    expect(readWatches(JSON.stringify([watch('a')]), 31 * 24 * 3600 * 1000)).toEqual([]);
  });

  it('gives a watch to one tab only, whichever comes first, also while others read the list of before', async () => {
    const held = new Set<string>();
    let last: Promise<unknown> = Promise.resolve();
    const request = (name: string, ...rest: unknown[]) => {
      const run = rest.at(-1) as (lock: object | null) => unknown;
      if (rest.length === 1) return (last = last.then(() => run({})));
      if (held.has(name)) return Promise.resolve(run(null));
      held.add(name);
      return Promise.resolve(run({}));
    };
    vi.stubGlobal('navigator', { locks: { request } });
    addWatch(job('a'));

    expect(await Promise.all([takeWatch('a'), takeWatch('a')])).toEqual([true, false]);
    addWatch(job('a'));
    expect(await takeWatch('a')).toBe(false);
    vi.unstubAllGlobals();
  });
});
