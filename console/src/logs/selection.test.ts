import { describe, expect, it } from 'vitest';
import { attemptsOf, formatLink, INITIAL, nameOf, parseLink, prefixOf, queryOf, shownSources, stateOf, type PaneState } from './selection.ts';
import type { LogSource } from './stream.ts';

function source(replica: string, attempt: number, more: Partial<LogSource> = {}): LogSource {
  return { namespace: 'default', pod: `job-${replica}-r${attempt}`, uid: `${replica}${attempt}`, container: 'pytorch', replica, attempt, color: 0, ended: false, ...more };
}

const SOURCES = [
  source('worker-0', 0),
  source('worker-1', 0),
  source('worker-1', 1),
  source('worker-1', 1, { container: 'paceline-clone', auxiliary: true }),
];

const pods = (state: Partial<PaneState>) => shownSources(SOURCES, { ...INITIAL, ...state }).shown.map((one) => `${one.pod}/${one.container}`);

describe('the logs of a job', () => {
  it('are those of the latest attempt of each replica, without containers beside the command', () => {
    expect(pods({})).toEqual(['job-worker-0-r0/pytorch', 'job-worker-1-r1/pytorch']);
  });

  it('can be chosen by attempt and by name', () => {
    expect(attemptsOf(SOURCES)).toEqual([0, 1]);
    expect(pods({ attempt: 0 })).toEqual(['job-worker-0-r0/pytorch', 'job-worker-1-r0/pytorch']);
    expect(pods({ attempt: 'all', chosen: ['worker-1'] })).toEqual(['job-worker-1-r0/pytorch', 'job-worker-1-r1/pytorch']);
    expect(pods({ chosen: ['worker-1/paceline-clone'] })).toEqual(['job-worker-1-r1/paceline-clone']);
    expect(pods({ chosen: [] })).toEqual([]);
  });

  it('are named by replica, container and attempt where that is needed', () => {
    expect(SOURCES.map((one) => nameOf(one, SOURCES))).toEqual(['worker-0', 'worker-1', 'worker-1', 'worker-1/paceline-clone']);
    expect(prefixOf(SOURCES[2]!, SOURCES, 'all')).toBe('worker-1 r1');
    const two = [source('web-0', 0, { container: 'a' }), source('web-0', 0, { container: 'b' })];
    expect(two.map((one) => nameOf(one, two))).toEqual(['web-0/a', 'web-0/b']);
  });

  it('are at most as many as a tab may follow, and the rest is counted', () => {
    const many = Array.from({ length: 30 }, (_, index) => source(`worker-${index}`, 0));
    expect(shownSources(many, INITIAL)).toMatchObject({ left: 6 });
  });
});

describe('the address of a pane', () => {
  it('says everything that was chosen', () => {
    const states: PaneState[] = [
      INITIAL,
      { ...INITIAL, chosen: [] },
      { ...INITIAL, chosen: ['worker-0', 'worker-1/x'], attempt: 3, layout: 'side', find: 'a&b=c', isRegex: true, matchCase: true },
      { ...INITIAL, attempt: 'all', onlyMatching: true, context: 2, level: 1, from: '2030-01-01T00:00:00Z', to: '2030-01-02T00:00:00Z' },
    ];
    for (const state of states) {
      const query = new URLSearchParams();
      for (const [name, value] of Object.entries(queryOf(state))) if (value !== null) query.set(name, value);
      expect(stateOf(new URLSearchParams(query.toString()))).toEqual(state);
    }
  });

  it('takes nonsense for nothing', () => {
    expect(stateOf(new URLSearchParams('attempt=x&level=99&context=-1&layout=?'))).toEqual({ ...INITIAL, level: 2 });
    for (const text of [null, '', 'x', 'a/b', 'a/b@<script>', 'a/b/c@2030-01-01T00:00:00Z']) expect(parseLink(text)).toBeNull();
  });

  it('names a line', () => {
    const link = { pod: 'job-worker-0', container: 'pytorch', stamp: '2030-01-01T00:00:00.000000001Z', nth: 3 };
    expect(parseLink(formatLink(link))).toEqual(link);
    expect(parseLink(new URLSearchParams(`line=${formatLink(link)}`).get('line'))).toEqual(link);
  });
});
