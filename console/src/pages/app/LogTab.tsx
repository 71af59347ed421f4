import { Select } from 'antd';
import { useMemo } from 'react';
import { useText } from '../../app/i18n.tsx';
import { useQuery } from '../../app/router.tsx';
import { LogPane, type LogSource } from '../../logs/LogPane.tsx';
import { Empty } from '../../parts/index.ts';
import { loggedRevisions, logSources } from './rows.ts';
import type { AppView } from './view.ts';

/** The logs of one revision; those of its TensorBoards and stages can be chosen too. */
export function LogTab({ view }: { view: AppView }) {
  const { apps } = useText();
  const words = apps.logs;
  const [query, setQuery] = useQuery();
  const revisions = loggedRevisions(view.logs);
  const asked = Number(query.get('revision') ?? view.revision);
  const revision = revisions.includes(asked) ? asked : (revisions[0] ?? view.revision);
  // The view changes often, its logs seldom: streams are not to begin again with each.
  const text = JSON.stringify(logSources(view, revision));
  const sources = useMemo(() => JSON.parse(text) as LogSource[], [text]);
  if (sources.length === 0) return <Empty title={words.none} hint={words.noneHint} />;
  return (
    <div className="pl-app-logs">
      {revisions.length > 1 && (
        <Select
          className="pl-facet"
          aria-label={words.revision}
          value={revision}
          popupMatchSelectWidth={false}
          options={revisions.map((number) => ({ value: number, label: number === view.revision ? words.current(number) : words.earlier(number) }))}
          onChange={(number: number) => setQuery({ revision: number === view.revision ? null : String(number), replicas: null, attempt: null })}
        />
      )}
      <LogPane key={revision} linked sources={sources} failedPod={revision === view.revision && view.phase === 'Failed' ? view.job?.cause?.pod : undefined} height="100%" />
    </div>
  );
}
