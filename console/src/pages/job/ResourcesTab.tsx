import { JobUsage } from '../../usage/JobUsage.tsx';
import type { JobView } from './view.ts';

export function ResourcesTab({ view }: { view: JobView }) {
  const { created, ended } = view.facts;
  // The timeline has the replicas in the order of their colours, and pods that are gone.
  const replicas = view.timeline.flatMap((row) => row.spans.map((span) => ({ pod: span.pod, replica: row.replica })));
  return (
    <JobUsage
      namespace={view.namespace}
      name={view.name}
      uid={view.uid}
      began={Date.parse(created ?? view.now) / 1000}
      ended={ended === null ? null : Date.parse(ended) / 1000}
      replicas={replicas}
    />
  );
}
