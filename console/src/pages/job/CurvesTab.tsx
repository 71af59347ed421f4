import { ReloadOutlined } from '@ant-design/icons';
import { Alert, Button, Segmented } from 'antd';
import { CurvePanel } from '../../curves/CurvePanel.tsx';
import type { JobCurves } from '../../curves/data.ts';
import { readCurves, usePolled } from '../../curves/useCurves.ts';
import { useText } from '../../app/i18n.tsx';
import { useQuery } from '../../app/router.tsx';
import { Empty, ErrorNotice, Loading } from '../../parts/index.ts';
import type { JobView } from './view.ts';

const FINAL = ['Succeeded', 'Failed'];

/** The training curves of a job: from event files where its TensorBoard looks for them, else from its log. */
export function CurvesTab({ view }: { view: JobView }) {
  const { curves } = useText();
  const [query, setQuery] = useQuery();
  const source = query.get('source') ?? '';
  const { data, error, isBusy, refresh } = usePolled(
    `${view.uid}/${source}`,
    (signal) => readCurves(view, { points: '1000', ...(source === '' ? {} : { source }) }, signal),
    !FINAL.includes(view.phase),
  );
  if (data === undefined) return error ? <ErrorNotice error={error} extra={<Button size="small" onClick={refresh}>{curves.refresh}</Button>} /> : <Loading rows={10} />;
  const places = data.folders.map(({ claim, folder }) => (folder === '' ? claim : `${claim}/${folder}`)).join(', ');
  const faults = data.runs.flatMap((run) => run.faults.map((fault) => `${run.name}/${fault}`));
  return (
    <>
      <div className="pl-row">
        {data.folders.length > 0 && (
          <Segmented
            aria-label={curves.source}
            value={data.source}
            onChange={(value) => setQuery({ source: value })}
            options={(['events', 'logs'] as const).map((value) => ({ value, label: curves.sources[value] }))}
          />
        )}
        <span className="pl-soft">{data.source === 'events' ? curves.fromEvents(places) : curves.fromLogs}</span>
        <Button className="pl-push" size="small" icon={<ReloadOutlined />} loading={isBusy} onClick={refresh}>
          {curves.refresh}
        </Button>
      </div>
      {error && <ErrorNotice error={error} />}
      {faults.length > 0 && <Alert type="warning" showIcon title={curves.faults} description={faults.join('\n')} />}
      {data.runs.some((run) => run.truncated) && <Alert type="info" showIcon title={curves.truncated} />}
      <Charts data={data} places={places} uid={view.uid} />
    </>
  );
}

function Charts({ data, places, uid }: { data: JobCurves; places: string; uid: string }) {
  const { curves } = useText();
  if (data.runs.some((run) => run.scalars.length > 0)) return <CurvePanel runs={data.runs} sync={uid} />;
  if (data.source === 'events') return <Empty title={curves.noEvents} hint={curves.noEventsHint(places)} />;
  return <Empty title={curves.none} hint={places === '' ? curves.noneHint : curves.noEventsHint(places)} />;
}
