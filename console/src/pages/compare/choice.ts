/** Which jobs are compared: they are in the URL, so that a comparison can be sent to somebody. */

export interface ComparedJob {
  namespace: string;
  kind: string;
  name: string;
}

export const MOST = 50;

export function readJobs(text: string | null): ComparedJob[] {
  const jobs = (text ?? '').split(',').flatMap((entry) => {
    const [namespace, kind, name, ...rest] = entry.split('/');
    return namespace && kind && name && rest.length === 0 ? [{ namespace, kind, name }] : [];
  });
  return [...new Map(jobs.map((job) => [keyOf(job), job])).values()];
}

export function keyOf({ namespace, kind, name }: ComparedJob): string {
  return `${namespace}/${kind}/${name}`;
}

export function compareUrl(jobs: readonly ComparedJob[]): string {
  return jobs.length === 0 ? '/compare' : `/compare?jobs=${jobs.map((job) => encodeURIComponent(keyOf(job))).join(',')}`;
}

/** Names that are shown for jobs: with the project and kind only where that is needed to tell them apart. */
export function shownNames(jobs: readonly ComparedJob[]): string[] {
  return jobs.map((job) => {
    const same = jobs.filter((other) => other.name === job.name);
    if (same.length === 1) return job.name;
    return same.every((other) => other.kind === job.kind) ? `${job.namespace}/${job.name}` : keyOf(job);
  });
}
