/** The next revision of an application: what it would change, and the request that makes it. console/manifests/app_changes.py */
import type { Consequence } from '../../actions/types.ts';
import { api } from '../../app/api.ts';
import { pathOf } from '../../app/router.tsx';
import type { Rendered } from '../train/submit.ts';

export interface AppName {
  namespace: string;
  name: string;
}

/** Other values, or the number of the revision to go back to. */
export type NextRevision = { values: Record<string, unknown> } | { revision: number };

/** The state of an application that a person saw: a change of another state is refused. */
export interface Seen {
  uid: string;
  generation: number;
}

export interface Upgrade extends Rendered, Seen {
  /** Without them the application would not be valid. */
  consequences?: Consequence[];
  isSame: boolean;
  /** Who asked for the current state; empty if that is not on record. */
  askedBy: string;
}

function pathTo({ namespace, name }: AppName): string {
  return `/api${pathOf('apps', namespace, name, 'upgrade')}`;
}

export function previewPath(app: AppName): string {
  return `${pathTo(app)}/preview`;
}

export function previewUpgrade(app: AppName, next: NextRevision, signal: AbortSignal): Promise<Upgrade> {
  return api.post<Upgrade>(previewPath(app), next, { signal });
}

/** Refused with 409, and nothing is changed, if the application is not in the state that was seen. */
export function upgrade(app: AppName, next: NextRevision, { uid, generation }: Seen): Promise<{ revision: number }> {
  return api.post<{ revision: number }>(pathTo(app), { ...next, uid, generation });
}
