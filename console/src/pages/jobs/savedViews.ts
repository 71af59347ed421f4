/** Views of the job list: what a link must carry to show the same, and those that were given a name in this browser. */
import { useMemo } from 'react';
import { useChoice } from '../../app/preferences.ts';
import { ALL_NAMESPACES } from '../../app/session.tsx';
import { DEFAULT_SORT, isFiltered, writeFilter, type JobFilter } from './filter.ts';

export interface SavedView {
  name: string;
  /** The query of the URL. */
  query: string;
}

/** As many are kept, with names so long. */
export const MOST_VIEWS = 30;
export const LONGEST_NAME = 60;
const LONGEST_QUERY = 4000;

/** The parameters of a view: all that makes the list look as it does, also the project, which is a choice of the browser otherwise. */
export function viewParameters(filter: JobFilter, columns: string | null, namespace: string): Record<string, string | null> {
  return { ...writeFilter(filter), columns, namespace: namespace === '' ? ALL_NAMESPACES : namespace };
}

/** The same for the address of the page: where nothing is chosen, it stays bare. */
export function addressParameters(filter: JobFilter, columns: string | null, namespace: string): Record<string, string | null> {
  const isPlain = !isFiltered(filter) && filter.sort === DEFAULT_SORT && columns === null;
  return { ...viewParameters(filter, columns, namespace), ...(isPlain ? { namespace: null } : {}) };
}

export function queryOf(parameters: Record<string, string | null>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== null && value !== '') query.set(name, value);
  return query.toString();
}

export function viewUrl({ query }: Pick<SavedView, 'query'>): string {
  return `/jobs?${new URLSearchParams(query).toString()}`;
}

/** Read what is stored; whatever is no view is left out. */
export function readViews(stored: unknown): SavedView[] {
  if (!Array.isArray(stored)) return [];
  return stored.filter(isView).slice(0, MOST_VIEWS);
}

function isView(entry: unknown): entry is SavedView {
  if (typeof entry !== 'object' || entry === null) return false;
  const { name, query } = entry as Partial<SavedView>;
  return typeof name === 'string' && name.trim() !== '' && name.length <= LONGEST_NAME && typeof query === 'string' && query.length <= LONGEST_QUERY;
}

/** The views with one more; one of the same name is replaced in its place. */
export function withView(views: readonly SavedView[], view: SavedView): SavedView[] {
  const isThere = views.some(({ name }) => name === view.name);
  return isThere ? views.map((other) => (other.name === view.name ? view : other)) : [...views, view].slice(-MOST_VIEWS);
}

export function useSavedViews(): [SavedView[], (views: SavedView[]) => void] {
  const [stored, store] = useChoice<unknown>('jobs.views', []);
  return [useMemo(() => readViews(stored), [stored]), store];
}
