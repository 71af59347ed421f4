/** Pure functions behind the tabs: counts by role, values by path, logs of a revision. */
import type { LogSource } from '../../logs/stream.ts';
import type { AppContainer, AppLog, AppService, AppValues, AppView } from './view.ts';

export interface RoleCount {
  role: string;
  services: number;
  running: number;
  ended: number;
  failed: number;
}

/** How many services of each role there are, run and have ended. */
export function countRoles(services: readonly AppService[]): RoleCount[] {
  const counts = new Map<string, RoleCount>();
  for (const { role, state } of services) {
    const count = counts.get(role) ?? { role, services: 0, running: 0, ended: 0, failed: 0 };
    count.services += 1;
    if (state === 'Running') count.running += 1;
    if (state === 'Succeeded' || state === 'Stopped') count.ended += 1;
    if (state === 'Failed') count.failed += 1;
    counts.set(role, count);
  }
  return [...counts.values()];
}

/** Whether all workers have ended, by which people see that a training is over. */
export function isFinished(services: readonly AppService[]): boolean {
  const workers = services.filter(({ role }) => role === 'worker');
  return workers.length > 0 && workers.every(({ state }) => state === 'Succeeded' || state === 'Failed' || state === 'Stopped');
}

export function filterContainers(containers: readonly AppContainer[], words: string, hasStages: boolean): AppContainer[] {
  const wanted = words.trim().toLowerCase();
  return containers.filter((row) => (hasStages || !row.isStage) && `${row.service} ${row.container} ${row.pod} ${row.image} ${row.node}`.toLowerCase().includes(wanted));
}

export interface ValueRow {
  path: string;
  value: unknown;
  initial: unknown;
  isChanged: boolean;
}

/** Every single value with its default, in the order of the template. */
export function valueRows({ effective, defaults }: AppValues): ValueRow[] {
  const rows: ValueRow[] = [];
  const visit = (value: unknown, initial: unknown, path: string) => {
    const inner = isObject(value) ? value : isObject(initial) ? initial : null;
    if (inner !== null && Object.keys(inner).length > 0) {
      for (const name of Object.keys({ ...(isObject(initial) ? initial : {}), ...inner }))
        visit(isObject(value) ? value[name] : undefined, isObject(initial) ? initial[name] : undefined, path === '' ? name : `${path}.${name}`);
    } else rows.push({ path, value, initial, isChanged: sayValue(value) !== sayValue(initial) });
  };
  visit(effective, defaults, '');
  return rows.filter(({ path }) => path !== '');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** A value as people write it; empty for nothing. */
export function sayValue(value: unknown): string {
  if (value === null || value === undefined || (isObject(value) && Object.keys(value).length === 0) || (Array.isArray(value) && value.length === 0)) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The revisions that have logs, newest first. */
export function loggedRevisions(logs: readonly AppLog[]): number[] {
  return [...new Set(logs.flatMap(({ revision }) => (revision === null ? [] : [revision])))].sort((left, right) => right - left);
}

/** The logs of a revision for the log pane: all replicas at first, TensorBoards only when they are chosen. */
export function logSources(view: Pick<AppView, 'namespace' | 'logs'>, revision: number): LogSource[] {
  const shown = view.logs.filter((log) => log.revision === null || log.revision === revision);
  const colours = new Map([...new Set(shown.map((log) => log.replica))].map((replica, index) => [replica, index]));
  return shown.map((log) => ({
    namespace: view.namespace,
    pod: log.pod,
    uid: log.uid,
    container: log.container,
    replica: log.replica,
    attempt: log.attempt,
    color: colours.get(log.replica) ?? 0,
    ended: log.ended !== null || !log.exists,
    ...(log.isStage || log.revision === null ? { auxiliary: true } : {}),
  }));
}

/** The last events that tell people something, newest first: of pods only the warnings, and only those of the training. */
export function lastEvents(view: Pick<AppView, 'events' | 'jobName'>, most: number): AppView['events'] {
  const isTold = ({ object, type }: AppView['events'][number]) => !object.startsWith('Pod/') || (type === 'Warning' && object.startsWith(`Pod/${view.jobName}-`));
  return view.events.filter(isTold).slice(-most).reverse();
}
