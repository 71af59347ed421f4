/** What the replicas of a job used over time, while it runs and after it is gone. */
import { Segmented } from 'antd';
import { useMemo } from 'react';
import { useText } from '../app/i18n.tsx';
import { useQuery } from '../app/router.tsx';
import { Empty, ErrorNotice, Loading } from '../parts/index.ts';
import { chartsOf, RANGES, type Range } from './series.ts';
import { UsageCharts, UsageTable } from './UsageCharts.tsx';
import { useUsage } from './useUsage.ts';

export interface JobUsageProps {
  namespace: string;
  name: string;
  uid: string;
  /** When the job began and ended, in seconds since 1970; it has not ended: `null`. */
  began: number;
  ended: number | null;
  /** The replicas of pods, in the order of their colours. */
  replicas: { pod: string; replica: string }[];
}

export function JobUsage({ namespace, name, uid, began, ended, replicas }: JobUsageProps) {
  const { usage: words, job } = useText();
  const [query, setQuery] = useQuery();
  const asked = query.get('range');
  const range: Range = asked !== null && asked in RANGES ? (asked as Range) : 'run';
  // The whole run of a job that has not ended grows with every answer.
  const span: Record<string, string> = range !== 'run' ? { seconds: String(RANGES[range]) } : { from: String(Math.floor(began)), ...(ended === null ? {} : { to: String(Math.ceil(ended) + 10) }) };
  const { answer, error } = useUsage(new URLSearchParams({ namespace, job: name, uid, points: '400', ...span }).toString(), ended === null);
  const names = JSON.stringify(replicas);
  const charts = useMemo(() => {
    const owners = JSON.parse(names) as JobUsageProps['replicas'];
    const labels = [...new Set(owners.map((entry) => entry.replica))];
    const byPod = new Map(owners.map((entry) => [entry.pod, entry.replica]));
    return chartsOf(answer?.items ?? [], (item) => {
      const label = byPod.get(item.pod ?? '') ?? item.pod ?? '';
      if (!labels.includes(label)) labels.push(label);
      return { label, colour: labels.indexOf(label) };
    }, answer?.step);
  }, [answer, names]);
  return (
    <div className="pl-stack" data-usage={answer?.source ?? ''} data-charts={charts.length}>
      <div className="pl-row">
        <Segmented<Range>
          value={range}
          onChange={(value) => setQuery({ range: value === 'run' ? null : value })}
          options={(Object.keys(RANGES) as Range[]).map((value) => ({ value, label: words.ranges[value] }))}
        />
        {answer && <span className="pl-faint">{words.sources[answer.source]}</span>}
      </div>
      {error && answer === undefined && <ErrorNotice error={error} />}
      {answer === undefined && !error && <Loading rows={10} />}
      {answer !== undefined && charts.length === 0 && <Empty title={words.none} hint={answer.source === 'metrics' ? words.noMetrics : words.noneHint} />}
      {answer !== undefined && charts.length > 0 && (
        <>
          <UsageCharts charts={charts} from={answer.from} to={Math.max(answer.to, answer.from + 60)} />
          <UsageTable charts={charts} owner={job.replicas.replica} />
        </>
      )}
    </div>
  );
}
