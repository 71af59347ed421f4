/** The logs of a job for the log pane, and links to one of them. */
import type { LogSource } from '../../logs/stream.ts';
import { jobUrl } from '../jobs/cells.tsx';
import type { JobView } from './view.ts';

export function logSources(view: Pick<JobView, 'namespace' | 'logs' | 'timeline'>): LogSource[] {
  const colours = new Map(view.timeline.map((row, index) => [row.replica, index]));
  return view.logs.map((log) => ({
    namespace: view.namespace,
    pod: log.pod,
    uid: log.uid,
    container: log.container,
    replica: log.replica,
    attempt: log.attempt,
    color: colours.get(log.replica) ?? 0,
    ended: log.ended !== null || !log.exists,
    ...(log.isStage ? { auxiliary: true } : {}),
  }));
}

/** The URL of the log of one attempt of a replica. */
export function logUrl(view: Pick<JobView, 'namespace' | 'kind' | 'name'>, replica: string, attempt: number): string {
  return `${jobUrl(view, 'logs')}?${new URLSearchParams({ replicas: replica, attempt: String(attempt) }).toString()}`;
}

/** The URL of the log that explains a failure: of the stage, if it failed before the command started. */
export function causeUrl(view: JobView): string {
  const failed = view.logs.find((log) => log.isFailed) ?? view.logs.find((log) => log.pod === view.cause?.pod);
  if (failed === undefined) return jobUrl(view, 'logs');
  return logUrl(view, failed.isStage ? `${failed.replica}/${failed.container}` : failed.replica, failed.attempt);
}
