import { describe, expect, it } from 'vitest';
import { namespaceIn } from '../../app/session.tsx';
import { readFilter, DEFAULT_SORT } from './filter.ts';
import { addressParameters, MOST_VIEWS, queryOf, readViews, viewParameters, viewUrl, withView } from './savedViews.ts';

const PLAIN = readFilter(new URLSearchParams());

describe('a link to a view', () => {
  it('carries search, filters, order, columns and project', () => {
    const filter = { ...PLAIN, text: 'mnist 3', phases: ['Failed'], labels: ['team=a'], sort: '-duration' };

    const query = new URLSearchParams(queryOf(viewParameters(filter, 'kind,labels', 'lab')));

    expect(readFilter(query)).toEqual(filter);
    expect(query.get('columns')).toBe('kind,labels');
    expect(namespaceIn(query)).toBe('lab');
  });

  it('names all projects together', () => {
    const query = new URLSearchParams(queryOf(viewParameters(PLAIN, null, '')));

    expect(namespaceIn(query)).toBe('');
  });

  it('is bare where nothing is chosen', () => {
    expect(queryOf(addressParameters(PLAIN, null, 'lab'))).toBe('');
    expect(queryOf(addressParameters({ ...PLAIN, sort: 'name' }, null, 'lab'))).toBe('sort=name&namespace=lab');
    expect(PLAIN.sort).toBe(DEFAULT_SORT);
  });

  it('leads to the list, whatever is stored', () => {
    expect(viewUrl({ query: '//evil.example/?q=a&x=<b>#c' })).toBe('/jobs?%2F%2Fevil.example%2F%3Fq=a&x=%3Cb%3E%23c');
  });
});

it.each(['', 'Upper', '-a', 'a'.repeat(64), '../x', '<script>'])('a project cannot be called %s', (name) => {
  expect(namespaceIn(new URLSearchParams({ namespace: name }))).toBeUndefined();
});

describe('saved views', () => {
  it('are replaced by name, and have a bound', () => {
    expect(withView([{ name: 'a', query: 'q=1' }, { name: 'b', query: '' }], { name: 'a', query: 'q=2' })).toEqual([{ name: 'a', query: 'q=2' }, { name: 'b', query: '' }]);
    const many = Array.from({ length: MOST_VIEWS }, (_, number) => ({ name: `v${number}`, query: '' }));
    expect(withView(many, { name: 'new', query: '' })).toHaveLength(MOST_VIEWS);
  });

  it.each([undefined, null, 'text', {}, [null, 1, {}, { name: ' ', query: '' }, { name: 'a' }, { name: 'a'.repeat(100), query: '' }]])('are none where %j is stored', (stored) => {
    expect(readViews(stored)).toEqual([]);
  });
});
