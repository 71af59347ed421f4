/** URLs are the state of the page: which page, of what, and its filters. A small router over the History API. */
import { useMemo, useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from 'react';

const ROUTES = [
  ['overview', '/'],
  ['jobs', '/jobs'],
  ['job', '/jobs/:namespace/:kind/:name/:tab?'],
  ['create', '/create/:kind?'],
  ['train', '/train'],
  ['apps', '/apps'],
  ['app', '/apps/:namespace/:name/:tab?'],
  ['history', '/history/:namespace?/:record?/:tab?'],
  ['notebooks', '/notebooks/:namespace?/:name?'],
  ['tensorboards', '/tensorboards/:namespace?/:name?'],
  ['compare', '/compare'],
  ['volumes', '/volumes/:namespace?/:claim?'],
  ['settings', '/settings'],
  ['about', '/about'],
  ['login', '/login'],
] as const;

export type PageName = (typeof ROUTES)[number][0];

export interface Route {
  /** `null`: there is no such page. */
  page: PageName | null;
  params: Record<string, string>;
  path: string;
}

export function matchRoute(path: string): Route {
  const parts = split(path);
  for (const [page, pattern] of ROUTES) {
    const params = match(split(pattern), parts);
    if (params !== null) return { page, params, path };
  }
  return { page: null, params: {}, path };
}

function split(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

function match(pattern: string[], parts: string[]): Record<string, string> | null {
  if (parts.length > pattern.length) return null;
  const params: Record<string, string> = {};
  for (const [index, piece] of pattern.entries()) {
    const part = parts[index];
    const isOptional = piece.endsWith('?');
    if (part === undefined) {
      if (!isOptional) return null;
    } else if (piece.startsWith(':')) params[piece.slice(1, isOptional ? -1 : undefined)] = decode(part);
    else if (piece !== part) return null;
  }
  return params;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Join segments to a path; each is encoded, so a name with a slash cannot reach another page. */
export function pathOf(...segments: string[]): string {
  return `/${segments.map(encodeURIComponent).join('/')}`;
}

const listeners = new Set<() => void>();
let blocker: (() => boolean) | null = null;

/** Ask before the page is left: `isFree` answers whether that is fine. Returns how to stop asking. */
export function blockNavigation(isFree: () => boolean): () => void {
  const block = () => isFree();
  const beforeUnload = (event: BeforeUnloadEvent) => {
    if (!isFree()) event.preventDefault();
  };
  blocker = block;
  window.addEventListener('beforeunload', beforeUnload);
  return () => {
    if (blocker === block) blocker = null;
    window.removeEventListener('beforeunload', beforeUnload);
  };
}

export function navigate(url: string, options: { replace?: boolean } = {}): void {
  const leaves = new URL(url, location.href).pathname !== location.pathname;
  if (leaves && blocker !== null && !blocker()) return;
  if (options.replace) history.replaceState(history.state, '', url);
  else history.pushState(null, '', url);
  changed();
  if (leaves) window.scrollTo(0, 0);
}

/** Return a navigation that happens only if the person is still on this page by then: for the end of a request. */
export function navigateFromHere(): (url: string) => void {
  const { pathname } = location;
  return (url) => {
    if (location.pathname === pathname) navigate(url);
  };
}

function changed(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) window.addEventListener('popstate', changed);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) window.removeEventListener('popstate', changed);
  };
}

export function useRoute(): Route {
  const path = useSyncExternalStore(subscribe, () => location.pathname);
  return useMemo(() => matchRoute(path), [path]);
}

type QueryPatch = Record<string, string | null | undefined>;

/** The query of the URL, and how to change some of it: `null` and empty text remove a parameter. */
export function useQuery(): [URLSearchParams, (patch: QueryPatch, options?: { replace?: boolean }) => void] {
  const search = useSyncExternalStore(subscribe, () => location.search);
  const query = useMemo(() => new URLSearchParams(search), [search]);
  return [query, setQuery];
}

function setQuery(patch: QueryPatch, options: { replace?: boolean } = { replace: true }): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null || value === undefined || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(location.pathname + (text === '' ? '' : `?${text}`) + location.hash, options);
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string };

/** A real link: it can be copied and opened in a new tab; a plain click stays in the page. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlain || (rest.target && rest.target !== '_self')) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={to} onClick={follow} {...rest} />;
}
