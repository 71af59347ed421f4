import { Button } from 'antd';
import { useMemo, useState } from 'react';
import { ActionDialog, type ActionRequest } from '../../actions/ActionDialog.tsx';
import { ICONS } from '../../actions/ActionButtons.tsx';
import { useRows, useView } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';
import type { Row } from '../../app/rows.ts';
import { useNamespace } from '../../app/session.tsx';
import { Ago, Duration, Empty, ErrorNotice, Loading, Page, Section, StatusIcon, StatusTag, toneOf } from '../../parts/index.ts';
import { jobUrl, ProgressCell, ReasonLine, ReplicasCell, shortKind } from '../jobs/cells.tsx';
import { StartCards } from '../jobs/StartCards.tsx';
import type { JobView } from '../job/view.ts';
import { metricIn, progressIn } from '../jobs/metrics.ts';
import { readProgress } from '../jobs/progress.ts';
import { Sparkline } from '../jobs/Sparkline.tsx';
import { useLogTail } from '../jobs/useLogTail.ts';
import { needAttention, underWay } from './choose.ts';
import { Machine } from './Machine.tsx';

const MOST = 6;

export default function OverviewPage() {
  const t = useText();
  const [namespace] = useNamespace();
  const { data: rows, error, revision } = useRows(namespace);
  const [request, setRequest] = useState<ActionRequest | null>(null);
  const minute = Math.floor(Date.now() / 60_000);
  const attention = useMemo(() => needAttention(rows ?? [], minute * 60_000), [rows, minute]);
  const active = useMemo(() => underWay(rows ?? []), [rows]);
  const isEmpty = rows !== undefined && rows.length === 0;
  return (
    <Page name="overview" title={t.overview.title} revision={revision}>
      {error && <ErrorNotice error={error} />}
      {rows === undefined && !error && <Loading rows={10} />}
      {isEmpty && (
        <Section>
          <Empty title={t.overview.welcome} hint={t.overview.welcomeHint}>
            <StartCards cards={['train', 'form', 'yaml']} />
          </Empty>
        </Section>
      )}
      {rows !== undefined && !isEmpty && (
        <>
          <Attention rows={attention} onRerun={(row) => setRequest({ action: 'rerun', targets: [row] })} />
          <div className="pl-overview-grid pl-live">
            <Active rows={active} />
            <Machine />
          </div>
          <Section title={t.overview.start}>
            <StartCards cards={['train', 'form', 'yaml', 'notebook']} />
          </Section>
        </>
      )}
      {isEmpty && <Machine />}
      <ActionDialog request={request} onClose={() => setRequest(null)} />
    </Page>
  );
}

function More({ count, to }: { count: number; to: string }) {
  const { overview } = useText();
  return <Link to={to}>{count > 0 ? overview.more(count) : overview.allJobs}</Link>;
}

function Attention({ rows, onRerun }: { rows: Row[]; onRerun: (row: Row) => void }) {
  const t = useText();
  if (rows.length === 0)
    return (
      <div className="pl-all-well pl-live" data-attention={0}>
        <StatusIcon tone="succeeded" />
        <strong>{t.overview.allWell}</strong>
        <span className="pl-faint">{t.overview.allWellHint}</span>
      </div>
    );
  const more = rows.length - MOST;
  return (
    <Section title={t.overview.attention} extra={more > 0 && <More count={more} to="/jobs?phase=Failed,Pending,Unknown&sort=phase" />} isFlush>
      <ul className="pl-attention pl-live" data-attention={rows.length}>
        {rows.slice(0, MOST).map((row) => (
          <li key={row.uid} data-job={row.name}>
            <StatusTag phase={row.phase} />
            <div className="pl-attention-text">
              <span className="pl-row">
                <Link to={jobUrl(row)} className="pl-job-name">
                  {row.name}
                </Link>
                <span className="pl-faint">{row.phase === 'Failed' ? <Ago time={row.ended || row.created} /> : <>{t.job.waits} <Duration from={row.created} /></>}</span>
              </span>
              <ReasonLine row={row} />
            </div>
            <span className="pl-row pl-attention-actions">
              {row.phase === 'Failed' ? (
                <>
                  <Link to={jobUrl(row, 'logs')}>{t.actions.logs}</Link>
                  <Button size="small" icon={ICONS.rerun} onClick={() => onRerun(row)}>
                    {t.actions.names.rerun}
                  </Button>
                </>
              ) : (
                <Link to={jobUrl(row)}>{t.actions.open}</Link>
              )}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Active({ rows }: { rows: Row[] }) {
  const t = useText();
  return (
    <Section title={t.overview.running} extra={<More count={rows.length - MOST} to="/jobs" />} isFlush>
      {rows.length === 0 ? (
        <p className="pl-faint pl-padded">{t.overview.nothingRuns}</p>
      ) : (
        <ul className="pl-active">
          {rows.slice(0, MOST).map((row) => (
            <ActiveJob key={row.uid} row={row} />
          ))}
        </ul>
      )}
    </Section>
  );
}

/** A running job; its progress comes with its view, of which the overview shows few. */
function ActiveJob({ row }: { row: Row }) {
  const isRunning = row.phase === 'Running';
  const { data } = useView<JobView>('job', isRunning ? { kind: row.kind, namespace: row.namespace, name: row.name } : null);
  const tail = useLogTail(data, isRunning);
  const progress = row.progress ?? data?.progress ?? progressIn(tail);
  const metric = useMemo(() => metricIn(tail), [tail]);
  return (
    <li data-job={row.name}>
      <StatusIcon tone={toneOf(row.phase)} label={row.phase} />
      <Link to={jobUrl(row)} className="pl-job-name">
        {row.name}
      </Link>
      <span className="pl-active-progress">
        {readProgress(progress) ? <ProgressCell progress={progress} phase={row.phase} /> : isRunning ? <span className="pl-faint">{shortKind(row.kind)}</span> : <StatusTag phase={row.phase} />}
      </span>
      <span className="pl-active-metric">{metric && <Sparkline metric={metric} />}</span>
      <ReplicasCell row={row} />
      <span className="pl-faint pl-active-time">{row.started === '' ? <Ago time={row.created} /> : <Duration from={row.started} to={row.ended} />}</span>
    </li>
  );
}
