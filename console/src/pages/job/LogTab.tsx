import { useMemo } from 'react';
import { useText } from '../../app/i18n.tsx';
import { LogPane, type LogSource } from '../../logs/LogPane.tsx';
import { Empty } from '../../parts/index.ts';
import { logSources } from './logs.ts';
import type { JobView } from './view.ts';

export function LogTab({ view }: { view: JobView }) {
  const { job } = useText();
  // The view changes often, its logs seldom: streams are not to begin again with each.
  const text = JSON.stringify(logSources(view));
  const sources = useMemo(() => JSON.parse(text) as LogSource[], [text]);
  if (sources.length === 0) return <Empty title={job.replicas.none} />;
  return <LogPane linked sources={sources} failedPod={view.phase === 'Failed' ? view.cause?.pod : undefined} height="100%" />;
}
