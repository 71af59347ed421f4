/** Who is logged in. A session that ends keeps the page: the login lies over it, and what was typed stays. */
import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { api, asApiError, onUnauthorized, type ApiError } from './api.ts';
import { live } from './hooks.ts';
import { setPreferences, usePreferences } from './preferences.ts';
import { useQuery } from './router.tsx';

export interface Cluster {
  name: string;
  isEmbedded: boolean;
  version: string;
  server: string;
}

export interface Me {
  name: string;
  /** Namespaces that the person may see; `null`: the cluster does not let this person list them. */
  namespaces: string[] | null;
  cluster: Cluster;
  /** When the session ends, RFC 3339; empty if it is not known. */
  expires: string;
  version: string;
}

/** A rule of a SelfSubjectRulesReview. */
export interface Rule {
  verbs?: string[];
  apiGroups?: string[];
  resources?: string[];
}

/** `out`: nobody is logged in; `expired`: somebody was, and the page is kept; `down`: the console does not answer. */
export type SessionState = 'loading' | 'in' | 'out' | 'expired' | 'down';

export interface Session {
  state: SessionState;
  me: Me | null;
  error: ApiError | undefined;
  refresh(): Promise<void>;
  login(credential: { code: string } | { token: string }): Promise<void>;
  /** End the session of this browser, or all sessions of everybody. */
  logout(everywhere?: boolean): Promise<void>;
}

/** How often a console that does not answer is asked again, in milliseconds. */
const RETRY = 3000;

const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('useSession needs a SessionProvider around it');
  return session;
}

type Loose = Record<string, unknown>;

/** Read /api/me with what may be missing filled in. */
export function readMe(body: Loose): Me {
  const cluster = (body.cluster ?? {}) as Loose;
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  return {
    name: text(body.name),
    namespaces: Array.isArray(body.namespaces) ? (body.namespaces as string[]) : null,
    cluster: {
      name: text(cluster.name),
      isEmbedded: cluster.embedded === true,
      version: text(cluster.version),
      server: text(cluster.server),
    },
    expires: text(body.expires),
    version: text(body.version),
  };
}

export function SessionProvider({ children }: { children: ReactNode }) {
  const [state, setState] = useState<SessionState>('loading');
  const [me, setMe] = useState<Me | null>(null);
  const [error, setError] = useState<ApiError>();

  const refresh = useCallback(async () => {
    try {
      setMe(readMe(await api.get<Loose>('/api/me')));
      setError(undefined);
      setState('in');
    } catch (failure) {
      const fault = asApiError(failure);
      setError(fault);
      if (fault.code !== 401) setState((now) => (now === 'in' || now === 'expired' ? now : 'down'));
    }
  }, []);

  useEffect(() => onUnauthorized(() => setState((now) => (now === 'in' || now === 'expired' ? 'expired' : 'out'))), []);
  useEffect(() => void refresh(), [refresh]);
  useEffect(() => {
    if (state !== 'down') return undefined;
    const timer = setInterval(() => void refresh(), RETRY);
    return () => clearInterval(timer);
  }, [state, refresh]);
  useEffect(() => {
    if (state === 'in') live.start();
    else if (state === 'out' || state === 'expired') live.stop();
  }, [state]);

  const login = useCallback(
    async (credential: { code: string } | { token: string }) => {
      await api.post('/api/login', credential);
      rightsByNamespace.clear();
      await refresh();
    },
    [refresh],
  );
  const logout = useCallback(async (everywhere = false) => {
    await api.post('/api/logout', everywhere ? { everywhere } : {});
    setMe(null);
    setState('out');
  }, []);

  const session = useMemo(() => ({ state, me, error, refresh, login, logout }), [state, me, error, refresh, login, logout]);
  return <SessionContext value={session}>{children}</SessionContext>;
}

/** How a URL names all namespaces together. */
export const ALL_NAMESPACES = '*';
export const NAMESPACE_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** The namespace that a URL names ('' for all); `undefined` if it names none that can exist. */
export function namespaceIn(query: URLSearchParams): string | undefined {
  const name = query.get('namespace') ?? '';
  if (name === ALL_NAMESPACES) return '';
  return NAMESPACE_NAME.test(name) ? name : undefined;
}

/** The namespace that lists show ('' for all), which is that of the URL or the last choice, and how to choose another. */
export function useNamespace(): [string, (namespace: string) => void] {
  const [{ namespace }] = usePreferences();
  const [query, setQuery] = useQuery();
  const { me } = useSession();
  const initial = me?.namespaces?.includes('default') ? 'default' : (me?.namespaces?.[0] ?? 'default');
  const choose = (next: string) => {
    if (next !== namespace) setPreferences({ namespace: next });
    const parameter = next === '' ? ALL_NAMESPACES : next;
    if (query.has('namespace') && query.get('namespace') !== parameter) setQuery({ namespace: parameter });
  };
  return [namespaceIn(query) ?? namespace ?? initial, choose];
}

interface Rights {
  resourceRules: Rule[];
  incomplete: boolean;
}

const rightsByNamespace = new Map<string, Promise<Rights>>();

function rightsIn(namespace: string): Promise<Rights> {
  const present = rightsByNamespace.get(namespace);
  if (present) return present;
  const rights = api.get<{ rights: Rights }>(`/api/me?namespace=${encodeURIComponent(namespace)}`).then((body) => body.rights);
  rights.catch(() => rightsByNamespace.delete(namespace));
  rightsByNamespace.set(namespace, rights);
  return rights;
}

/** Whether rules allow a verb on a resource; a subresource is written as RBAC does it: `pods/exec`. */
export function allows(rules: Rule[], verb: string, group: string, resource: string): boolean {
  const has = (list: string[] | undefined, value: string) => list?.some((entry) => entry === '*' || entry === value) ?? false;
  return rules.some((rule) => has(rule.verbs, verb) && has(rule.apiGroups, group) && has(rule.resources, resource));
}

/** Whether the person may do something in a namespace; `true` while that is not known: the cluster has the last word. */
export function useRight(verb: string, group: string, resource: string, namespace: string): boolean {
  const [isAllowed, setAllowed] = useState(true);
  useEffect(() => {
    let isCurrent = true;
    if (namespace !== '')
      rightsIn(namespace).then(
        (rights) => isCurrent && setAllowed(rights.incomplete || allows(rights.resourceRules, verb, group, resource)),
        () => undefined,
      );
    return () => {
      isCurrent = false;
    };
  }, [verb, group, resource, namespace]);
  return isAllowed;
}
