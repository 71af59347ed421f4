/** The page of an application as the server computes it: presentation/app_page.py. */
import type { PossibleAction } from '../../actions/types.ts';
import type { JobEvent, JobView, LogSource } from '../job/view.ts';

export interface AppService {
  name: string;
  role: string;
  kind: string;
  object: string;
  state: string;
  exitCode: number | null;
  reason: string;
  desired: number;
  running: number;
  restarts: number;
  service: string;
  address: string;
  ports: number[];
  since: string | null;
}

export interface AppContainer {
  id: string;
  container: string;
  pod: string;
  uid: string;
  service: string;
  role: string;
  index: number;
  attempt: number;
  group: 'job' | 'tensorboard';
  isStage: boolean;
  exists: boolean;
  image: string;
  node: string;
  address: string;
  ports: number[];
  state: string;
  exitCode: number | null;
  reason: string;
  message: string;
  restarts: number;
  started: string | null;
  ended: string | null;
}

export interface AppLog extends LogSource {
  /** `null`: of a TensorBoard, which all revisions share. */
  revision: number | null;
}

export interface AppRoute {
  name: string;
  tensorboard: string;
  uid: string;
  worker: number | null;
  phase: string;
  waiting: string;
  address: string;
  folders: string[];
}

export interface Change {
  path: string;
  old: unknown;
  new: unknown;
}

export interface AppRevision {
  revision: number;
  isFirst: boolean;
  job: string;
  kind: string;
  exists: boolean;
  phase: string;
  created: string | null;
  started: string | null;
  ended: string | null;
  commit: string;
  message: string;
  metrics: Record<string, string>;
  hyperparameters: Record<string, string>;
  results: string;
  template: string;
  askedBy: string;
  changes: Change[];
}

export interface AppValues {
  written: Record<string, unknown>;
  effective: Record<string, unknown>;
  defaults: Record<string, unknown>;
}

/** The job of the current revision; its events and actions are those of the application. */
export type CurrentJob = Omit<JobView, 'events' | 'eventCount' | 'conditions' | 'actions' | 'tensorboard' | 'now'>;

export interface AppView {
  now: string;
  kind: string;
  apiVersion: string;
  namespace: string;
  name: string;
  uid: string;
  isDeleting: boolean;
  phase: string;
  revision: number;
  created: string | null;
  updated: string | null;
  waiting: string;
  message: string;
  template: string;
  templateVersion: string;
  jobName: string;
  jobKind: string;
  askedBy: string;
  job: CurrentJob | null;
  services: AppService[];
  containers: AppContainer[];
  logs: AppLog[];
  routes: AppRoute[];
  revisions: AppRevision[];
  values: AppValues;
  events: JobEvent[];
  eventCount: number;
  actions: PossibleAction[];
}
