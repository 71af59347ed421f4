/** One job of the past: what it was, what became of it, and what is left of it. */
import { CopyOutlined } from '@ant-design/icons';
import { Button, Tabs } from 'antd';
import { lazy, Suspense, useEffect, useState } from 'react';
import { stringify } from 'yaml';
import { cloneRecordUrl } from '../../actions/ActionButtons.tsx';
import { api, asApiError, type ApiError } from '../../app/api.ts';
import { useText } from '../../app/i18n.tsx';
import { Link, navigate, pathOf } from '../../app/router.tsx';
import { Ago, CopyButton, Empty, ErrorNotice, Facts, Loading, Page, Section } from '../../parts/index.ts';
import { JobUsage } from '../../usage/JobUsage.tsx';
import { ReplicaStatus } from '../job/ReplicaStatus.tsx';
import { jobUrl } from '../jobs/cells.tsx';
import { Outcome } from './Outcome.tsx';
import { manifestOf, replicaOf, type JobRecord } from './rows.ts';

const YamlView = lazy(() => import('../job/YamlView.tsx').then((module) => ({ default: module.YamlView })));
const LogPane = lazy(() => import('../../logs/LogPane.tsx').then((module) => ({ default: module.LogPane })));
const TABS = ['summary', 'logs', 'resources', 'events', 'yaml'] as const;
type Tab = (typeof TABS)[number];

export function HistoryDetail({ namespace, name, tab: asked }: { namespace: string; name: string; tab: string | undefined }) {
  const { history: words, job: jobWords } = useText();
  const [record, setRecord] = useState<JobRecord>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    const control = new AbortController();
    const path = `/k8s/apis/paceline.dev/v1beta1${pathOf('namespaces', namespace, 'jobrecords', name)}`;
    api.get<JobRecord>(path, { signal: control.signal }).then(setRecord, (cause: unknown) => !control.signal.aborted && setError(asApiError(cause)));
    return () => control.abort();
  }, [namespace, name]);
  const tab: Tab = TABS.find((entry) => entry === asked) ?? 'summary';
  if (record === undefined)
    return (
      <Page name="history" title={name}>
        {error?.code === 404 ? <Empty title={words.notFound} hint={words.notFoundHint}><Link to="/history">{words.back}</Link></Empty> : error ? <ErrorNotice error={error} /> : <Loading rows={12} />}
      </Page>
    );
  const { job } = record.spec;
  const status = record.status ?? {};
  const isFull = tab === 'logs';
  return (
    <Page
      name="history"
      title={job.name}
      isFull={isFull}
      heading={
        <div className="pl-row">
          <h1 translate="no">{job.name}</h1>
          <Outcome phase={status.phase ?? 'NotFinished'} isOver={status.phase !== undefined} />
          <span className="pl-faint">{job.kind} · {namespace} · <Ago time={record.spec.created} /></span>
        </div>
      }
      actions={
        <>
          <Button onClick={() => navigate('/history')}>{words.back}</Button>
          <Button icon={<CopyOutlined />} onClick={() => navigate(cloneRecordUrl({ namespace, name, kind: job.kind }))} data-action="clone">
            {words.clone}
          </Button>
          {status.phase === undefined && <Button type="primary" onClick={() => navigate(jobUrl({ namespace, kind: job.kind, name: job.name }))}>{words.openJob}</Button>}
        </>
      }
    >
      <Tabs className="pl-job-tabs" activeKey={tab} onChange={(key) => navigate(pathOf('history', namespace, name, key))} items={TABS.map((key) => ({ key, label: jobWords.tabs[key] }))} />
      <div className={isFull ? 'pl-job-body pl-job-body-full' : 'pl-job-body'} data-tab={tab}>
        <Suspense fallback={<Loading rows={8} />}>
          {tab === 'summary' && <Summary record={record} />}
          {tab === 'logs' && <Logs record={record} />}
          {tab === 'resources' && <Resources record={record} />}
          {tab === 'events' && <Events record={record} />}
          {tab === 'yaml' && <Manifest record={record} />}
        </Suspense>
      </div>
    </Page>
  );
}

function Summary({ record }: { record: JobRecord }) {
  const { history: words, job } = useText();
  const { spec, status = {} } = record;
  const when = (time: string | undefined) => (time ? <Ago time={time} /> : undefined);
  const pairs = (values: Record<string, string> | undefined) => (values && Object.keys(values).length > 0 ? Object.entries(values).map(([key, value]) => `${key}=${value}`).join(', ') : undefined);
  const rows: (readonly [string, React.ReactNode])[] = [
    [words.reason, status.failure?.message || status.reason],
    [words.lastPhase, status.lastPhase],
    [words.created, when(spec.created)],
    [job.facts.started, when(status.startTime)],
    [job.facts.ended, when(status.completionTime)],
    [words.deletedAt, when(status.deletionTime)],
    [job.facts.askedBy, record.metadata.annotations?.['paceline.dev/asked-by']],
    [job.facts.application, spec.app],
    [job.facts.commit, status.commit],
    [job.facts.hyperparameters, pairs(spec.hyperparameters)],
    [words.metrics, pairs(status.metrics)],
    [job.facts.uid, spec.uid],
  ];
  const lines = status.failure?.lastLines ?? [];
  return (
    <div className="pl-stack">
      <Section title={words.facts}>
        <Facts items={rows.filter(([, value]) => value !== undefined && value !== '').map(([label, value]) => [label, typeof value === 'string' ? <span className="pl-wrap" translate="no">{value}</span> : value] as const)} />
      </Section>
      {lines.length > 0 && (
        <Section title={job.cause.lastLines}>
          <pre className="pl-history-lines" translate="no" tabIndex={0}>{lines.join('\n')}</pre>
        </Section>
      )}
      {(status.replicas ?? []).length > 0 && (
        <Section title={job.tabs.replicas}>
          <ul className="pl-history-replicas">
            {(status.replicas ?? []).map((replica) => (
              <li key={replica.uid}>
                <ReplicaStatus phase={replica.phase ?? ''} /> <span translate="no">{replica.name}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
    </div>
  );
}

function replicasOf(record: JobRecord): { pod: string; replica: string; uid: string; containers: string[] }[] {
  return (record.status?.replicas ?? []).map((entry) => ({ pod: entry.name, uid: entry.uid, replica: replicaOf(entry.name, record.spec.job.name), containers: (entry.containers ?? []).map((container) => container.name) }));
}

function Logs({ record }: { record: JobRecord }) {
  const { history: words } = useText();
  const [sources] = useState(() =>
    replicasOf(record).flatMap((entry, color) =>
      entry.containers.slice(0, 1).map((container) => ({ namespace: record.metadata.namespace, pod: entry.pod, uid: entry.uid, container, replica: entry.replica, attempt: 0, color, ended: true })),
    ),
  );
  if (sources.length === 0) return <Empty title={words.noLogs} hint={words.noLogsHint} />;
  return <LogPane linked sources={sources} failedPod={record.status?.failure?.pod} height="100%" />;
}

function Resources({ record }: { record: JobRecord }) {
  const { spec, status = {} } = record;
  const ended = status.completionTime ?? status.deletionTime;
  return (
    <JobUsage
      namespace={record.metadata.namespace}
      name={spec.job.name}
      uid={spec.uid}
      began={Date.parse(spec.created) / 1000}
      ended={ended === undefined ? null : Date.parse(ended) / 1000}
      replicas={replicasOf(record)}
    />
  );
}

function Events({ record }: { record: JobRecord }) {
  const { job } = useText();
  const events = record.status?.events ?? [];
  if (events.length === 0) return <Empty title={job.events.none} />;
  return (
    <Section isFlush>
      <div className="pl-usage-scroll" tabIndex={0} role="region" aria-label={job.tabs.events}>
        <table className="pl-usage-table">
          <thead>
            <tr>
              {[job.events.time, job.events.reason, job.events.object, job.events.message].map((title) => <th scope="col" key={title}>{title}</th>)}
            </tr>
          </thead>
          <tbody>
            {[...events].reverse().map((event, index) => (
              <tr key={index} data-reason={event.reason}>
                <td className="pl-nowrap"><Ago time={event.time} /></td>
                <td className={event.type === 'Warning' ? 'pl-tone-pending' : undefined} translate="no">{event.reason}</td>
                <td className="pl-faint" translate="no">{event.object}</td>
                <td className="pl-wrap" translate="no">{event.message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Manifest({ record }: { record: JobRecord }) {
  const { history: words } = useText();
  const text = stringify(manifestOf(record));
  return (
    <Section title={words.manifest} hint={words.manifestHint} extra={<CopyButton text={text} />}>
      <YamlView text={text} />
    </Section>
  );
}
