/** The page of a job as the server computes it: presentation/job_page.py. */
import type { PossibleAction } from '../../actions/types.ts';
import type { TrainingProgress } from '../jobs/progress.ts';
import type { Shortage } from '../jobs/shortages.ts';

export interface Advice {
  code: string;
  subject: string;
}

export interface Cause {
  kind: 'Failed' | 'Restarted' | 'Waiting' | 'Rejected' | 'Invalid';
  reason: string;
  message: string;
  advice: Advice;
  replica?: string;
  pod?: string;
  container?: string;
  exitCode?: number | null;
  signal?: string;
  podReason?: string;
  detail?: string;
  lastLines?: string[];
  time?: string | null;
  shortages?: Shortage[];
  neverRuns?: boolean;
  startAfter?: string | null;
}

export interface Span {
  attempt: number;
  pod: string;
  node: string;
  state: string;
  start: string;
  end: string | null;
  exitCode: number | null;
  reason: string;
}

export interface TimelineRow {
  replica: string;
  isLeader: boolean;
  spans: Span[];
}

export interface Replica {
  replica: string;
  role: string;
  index: number;
  attempt: number;
  isCurrent: boolean;
  exists: boolean;
  pod: string;
  uid: string;
  phase: string;
  exitCode: number | null;
  reason: string;
  message: string;
  restarts: number;
  node: string;
  address: string;
  containers: string[];
  created: string | null;
  started: string | null;
  ended: string | null;
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  lastTransitionTime: string;
}

export interface JobEvent {
  uid: string;
  time: string;
  count: number;
  type: string;
  reason: string;
  object: string;
  message: string;
  source: string;
}

export interface LogSource {
  replica: string;
  attempt: number;
  pod: string;
  uid: string;
  node: string;
  container: string;
  isStage: boolean;
  isLeader: boolean;
  isFailed: boolean;
  exists: boolean;
  isRunning: boolean;
  restarts: number;
  started: string | null;
  ended: string | null;
}

export interface Place {
  sort: 'claim' | 'directory' | 'bucket';
  name: string;
  path: string;
}

export interface Facts {
  created: string | null;
  started: string | null;
  running: string | null;
  ended: string | null;
  pausedSeconds: number;
  queue: string;
  priority: number;
  source: { url: string; revision: string; commit: string };
  images: string[];
  claims: { claim: string; path: string }[];
  input: Place | null;
  output: Place | null;
  hyperparameters: Record<string, unknown>;
  requests: Record<string, string>;
  limits: Record<string, string>;
  labels: Record<string, string>;
  app: string;
  revision: string;
  activeDeadlineSeconds: number | null;
  ttlSeconds: number | null;
}

export interface Role {
  role: string;
  replicas: number;
  images: string[];
  restartPolicy: string;
  restarts: number;
  states: Record<string, number>;
}

export interface JobView {
  now: string;
  kind: string;
  apiVersion: string;
  namespace: string;
  name: string;
  uid: string;
  isDeleting: boolean;
  phase: string;
  ready: number;
  desired: number;
  attempt: number;
  elastic: { currentReplicas: number; expectedReplicas: number } | null;
  askedBy: string;
  copyOf: string;
  cause: Cause | null;
  /** The place in the scheduling queue; only the page of a job on the embedded cluster has one. */
  queue?: { position: number; length: number; ahead: { namespace: string; name: string } | null } | null;
  restarts: { used: number; limit: number | null; left: number | null };
  progress: TrainingProgress | null;
  timeline: TimelineRow[];
  facts: Facts;
  roles: Role[];
  replicas: Replica[];
  conditions: Condition[];
  events: JobEvent[];
  eventCount: number;
  logs: LogSource[];
  tensorboard: { name: string; note: string } | null;
  actions: PossibleAction[];
}
