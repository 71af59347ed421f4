import { describe, expect, it } from 'vitest';
import type { Row } from '../../app/rows.ts';
import { DEFAULT_SORT, facetsOf, filterRows, isFiltered, readFilter, sameFacet, sortRows, writeFilter } from './filter.ts';

function row(part: Partial<Row>): Row {
  return {
    uid: part.name ?? 'u',
    namespace: 'default',
    name: 'job',
    kind: 'PyTorchTrainingJob',
    phase: 'Running',
    reason: '',
    created: '2030-01-31T12:00:00Z',
    started: '',
    ended: '',
    replicas: { worker: [1, 2] },
    cpuRequest: 1,
    cpuLimit: 2,
    memoryRequest: 0,
    memoryLimit: 0,
    devices: {},
    queue: '',
    priority: '',
    labels: {},
    app: '',
    revision: '',
    tensorboard: '',
    restarts: 0,
    progress: null,
    ...part,
  };
}

const names = (rows: Row[]) => rows.map((entry) => entry.name);

describe('the filter in the URL', () => {
  it('survives a round trip, and leaves out what is usual', () => {
    const written = writeFilter({ text: 'mnist 3', phases: ['Failed', 'Pending'], labels: ['team=a'], sort: DEFAULT_SORT });
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(written)) if (value !== null) query.set(name, value);

    expect(query.toString()).toBe('q=mnist+3&phase=Failed%2CPending&label=team%3Da');
    expect(readFilter(query)).toMatchObject({ text: 'mnist 3', phases: ['Failed', 'Pending'], labels: ['team=a'], sort: DEFAULT_SORT });
    expect(isFiltered(readFilter(query))).toBe(true);
    expect(isFiltered(readFilter(new URLSearchParams('sort=name')))).toBe(false);
  });
});

describe('values in the URL that no job can have', () => {
  it.each(['phase=Nonsense,__proto__', 'kind=constructor,%3Cscript%3E', 'label=%3Cimg%20src%3Dx%3E,=a', 'queue=,', 'sort=__proto__', 'sort=-constructor', 'sort=labels', 'sort=--name'])('%s is ignored', (query) => {
    expect(readFilter(new URLSearchParams(query))).toEqual(readFilter(new URLSearchParams()));
  });

  it('leave the good ones beside them', () => {
    expect(readFilter(new URLSearchParams('phase=Nonsense,Failed,Failed')).phases).toEqual(['Failed']);
    expect(readFilter(new URLSearchParams(`q=${'x'.repeat(10_000)}`)).text).toHaveLength(500);
  });
});

describe('filtering', () => {
  const rows = [
    row({ name: 'mnist-3', phase: 'Failed', reason: "worker-1: No module named 'torchvision'", labels: { team: 'a' } }),
    row({ name: 'bert', phase: 'Pending', queue: 'high', labels: { team: 'b' } }),
    row({ name: 'digits', kind: 'XGBoostTrainingJob', labels: {} }),
  ];
  const shown = (query: string) => names(filterRows(rows, readFilter(new URLSearchParams(query))));

  it.each([
    ['q=MNIST', ['mnist-3']],
    ['q=torchvision+mnist', ['mnist-3']],
    ['q=torchvision+bert', []],
    ['q=high', ['bert']],
    ['phase=Failed,Pending', ['mnist-3', 'bert']],
    ['kind=XGBoostTrainingJob', ['digits']],
    ['label=team', ['mnist-3', 'bert']],
    ['label=team%3Db', ['bert']],
    ['label=constructor', []],
    ['queue=high&phase=Failed', []],
  ])('%s', (query, expected) => {
    expect(shown(query)).toEqual(expected);
  });
});

describe('sorting', () => {
  const rows = [
    row({ name: 'b', phase: 'Succeeded', created: '2030-01-02T00:00:00Z' }),
    row({ name: 'a', phase: 'Failed', created: '2030-01-01T00:00:00Z' }),
    row({ name: 'c', phase: 'Failed', created: '2030-01-03T00:00:00Z' }),
  ];

  it.each([
    [DEFAULT_SORT, ['c', 'b', 'a']],
    ['name', ['a', 'b', 'c']],
    ['phase', ['c', 'a', 'b']],
    ['no-such-column', ['a', 'b', 'c']],
    ['__proto__', ['a', 'b', 'c']],
  ])('%s', (sort, expected) => {
    expect(names(sortRows(rows, sort))).toEqual(expected);
  });
});

describe('facets', () => {
  it('count values, phases in the order in which they need a look', () => {
    const facets = facetsOf([row({ phase: 'Running', labels: { team: 'a' } }), row({ phase: 'Failed', labels: { team: 'a' } }), row({ phase: 'Running', queue: 'high' })]);

    expect(facets.phases).toEqual([{ value: 'Failed', count: 1 }, { value: 'Running', count: 2 }]);
    expect(facets.labels).toEqual([{ value: 'team=a', count: 2 }]);
    expect(facets.queues).toEqual([{ value: 'high', count: 1 }]);
  });
});

it('a facet is drawn again when its choice or its counts change, not when an equal choice is read anew', () => {
  const facets = [{ value: 'Failed', count: 2 }];
  const facet = { facets, chosen: ['Failed'], total: 3 };
  expect(sameFacet(facet, { ...facet, chosen: ['Failed'] })).toBe(true);
  expect(sameFacet(facet, { ...facet, chosen: [] })).toBe(false);
  expect(sameFacet(facet, { ...facet, facets: [...facets] })).toBe(false);
});
