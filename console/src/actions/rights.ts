/** What the person may do in a namespace, asked once and kept for a minute. Until it is known, nothing is forbidden. */
import { useEffect, useState } from 'react';
import { api } from '../app/api.ts';
import type { ActionName } from './types.ts';

interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
}

export interface Rights {
  rules: Rule[];
  /** The cluster did not list everything: what is missing may still be allowed. */
  isIncomplete: boolean;
}

export interface Right {
  verb: string;
  group: string;
  resource: string;
}

const JOBS = 'batch.tensorstack.dev';
const GROUPS: Record<string, string> = { TensorBoard: 'tensorstack.dev', Notebook: 'tensorstack.dev', TrainingApp: 'paceline.dev' };
const VERBS: Record<ActionName, string> = {
  pause: 'patch',
  resume: 'patch',
  stop: 'patch',
  restart: 'patch',
  scale: 'patch',
  suspend: 'patch',
  rerun: 'create',
  debug: 'create',
  delete: 'delete',
  uninstall: 'delete',
};

/** The right that an action needs. */
export function rightOf(action: ActionName, kind: string): Right {
  // An application runs again by a change of its spec, a job as a copy.
  const verb = action === 'rerun' && kind === 'TrainingApp' ? 'patch' : VERBS[action];
  return { verb, group: GROUPS[kind] ?? JOBS, resource: `${kind.toLowerCase()}s` };
}

export function isAllowed(rights: Rights | undefined, right: Right): boolean {
  if (rights === undefined || rights.isIncomplete) return true;
  const has = (values: string[] | undefined, value: string) => values !== undefined && (values.includes('*') || values.includes(value));
  return rights.rules.some(
    (rule) => has(rule.verbs, right.verb) && has(rule.apiGroups, right.group) && has(rule.resources, right.resource) && !rule.resourceNames?.length,
  );
}

interface Review {
  status?: { resourceRules?: Rule[]; incomplete?: boolean };
}

const LIFETIME = 60_000;
const known = new Map<string, { at: number; rights: Promise<Rights | undefined> }>();

function ask(namespace: string): Promise<Rights | undefined> {
  const entry = known.get(namespace);
  if (entry !== undefined && Date.now() - entry.at < LIFETIME) return entry.rights;
  const rights = api
    .post<Review>('/k8s/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    })
    .then((review) => ({ rules: review.status?.resourceRules ?? [], isIncomplete: review.status?.incomplete === true }))
    .catch(() => undefined);
  known.set(namespace, { at: Date.now(), rights });
  return rights;
}

export function useRights(namespace: string): Rights | undefined {
  const [rights, setRights] = useState<Rights>();
  useEffect(() => {
    let isCurrent = true;
    if (namespace === '') return undefined;
    void ask(namespace).then((answer) => {
      if (isCurrent) setRights(answer);
    });
    return () => {
      isCurrent = false;
    };
  }, [namespace]);
  return rights;
}
