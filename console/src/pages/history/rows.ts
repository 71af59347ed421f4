/** The jobs of the past as the server lists them (presentation/job_history.py), and what the list shows of them. */
export interface HistoryRow {
  record: string;
  namespace: string;
  uid: string;
  name: string;
  kind: string;
  phase: string;
  lastPhase: string;
  isOver: boolean;
  reason: string;
  created: string;
  started: string;
  ended: string;
  seconds: number | null;
  app: string;
  askedBy: string;
  commit: string;
  metrics: Record<string, string>;
  hyperparameters: Record<string, string>;
}

export interface HistoryPage {
  rows: HistoryRow[];
  after: string;
}

export interface JobRecord {
  metadata: { name: string; namespace: string; creationTimestamp: string; annotations?: Record<string, string> };
  spec: { uid: string; created: string; app?: string; hyperparameters?: Record<string, string>; job: { apiVersion: string; kind: string; name: string; labels?: Record<string, string>; spec: object } };
  status?: {
    phase?: string;
    lastPhase?: string;
    reason?: string;
    startTime?: string;
    completionTime?: string;
    deletionTime?: string;
    commit?: string;
    metrics?: Record<string, string>;
    failure?: { replica?: string; pod?: string; container?: string; exitCode?: number; message?: string; lastLines?: string[] };
    replicas?: { name: string; uid: string; phase?: string; containers?: { name: string }[] }[];
    events?: { time: string; type: string; reason: string; object: string; message: string; count?: number }[];
  };
}

/** The rows that match, the latest first. */
export function shownRows(rows: readonly HistoryRow[], find: string, phase: string): HistoryRow[] {
  const words = find.toLowerCase().split(/\s+/).filter((word) => word !== '');
  return rows
    .filter((row) => phase === '' || row.phase === phase)
    .filter((row) => {
      const text = `${row.name} ${row.kind} ${row.record} ${row.reason} ${row.app}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .sort((one, other) => (one.created < other.created ? 1 : one.created > other.created ? -1 : 0));
}

/** The manifest that runs the same job again. */
export function manifestOf(record: JobRecord): object {
  const { apiVersion, kind, name, labels, spec } = record.spec.job;
  const kept = labels !== undefined && Object.keys(labels).length > 0 ? { labels } : {};
  return { apiVersion, kind, metadata: { name, namespace: record.metadata.namespace, ...kept }, spec };
}

/** What a replica's pod is called without the name of its job: mnist-1f409-worker-0 is worker-0. */
export function replicaOf(pod: string, job: string): string {
  const rest = pod.startsWith(`${job}-`) ? pod.slice(job.length + 1) : pod;
  return /[a-z]+-\d+$/.exec(rest.replace(/-r\d+$/, ''))?.[0] ?? rest;
}
