import { Segmented, Table, Tooltip, type TableColumnType } from 'antd';
import { useMemo, useState } from 'react';
import { useText } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';
import { Ago, Duration, Empty, ReplicaDot, StatusTag } from '../../parts/index.ts';
import { jobUrl } from '../jobs/cells.tsx';
import { useIsNarrow } from '../jobs/layout.ts';
import { logUrl } from './logs.ts';
import type { JobView, Replica } from './view.ts';

export function Replicas({ view }: { view: JobView }) {
  const { job } = useText();
  const words = job.replicas;
  const isNarrow = useIsNarrow();
  const [isAll, setAll] = useState(false);
  const colours = useMemo(() => new Map(view.timeline.map((row, index) => [row.replica, index])), [view.timeline]);
  const hasEarlier = view.replicas.some((replica) => !replica.isCurrent);
  const rows = isAll ? view.replicas : view.replicas.filter((replica) => replica.isCurrent);
  if (view.replicas.length === 0) return <Empty title={words.none} />;
  return (
    <div className="pl-stack">
      {hasEarlier && (
        <div>
          <Segmented
            value={isAll ? 'all' : 'current'}
            onChange={(value) => setAll(value === 'all')}
            options={[
              { value: 'current', label: words.current },
              { value: 'all', label: words.all },
            ]}
          />
        </div>
      )}
      {isNarrow ? (
        <div className="pl-stack">
          {rows.map((replica) => (
            <ReplicaCard key={replica.pod} replica={replica} colour={colours.get(replica.replica) ?? 0} view={view} />
          ))}
        </div>
      ) : (
        <ReplicaTable rows={rows} colours={colours} view={view} />
      )}
    </div>
  );
}

function Name({ replica, colour }: { replica: Replica; colour: number }) {
  const { job } = useText();
  return (
    <span className="pl-row pl-nowrap">
      <ReplicaDot index={colour} />
      <strong>{replica.replica}</strong>
      {replica.attempt > 0 && <span className="pl-faint">{job.timeline.attempt(replica.attempt)}</span>}
    </span>
  );
}

function Phase({ replica }: { replica: Replica }) {
  const { common, job } = useText();
  const words: Record<string, string> = { ...common.phases, ...job.timeline.states };
  return (
    <StatusTag phase={replica.phase}>
      {words[replica.phase] ?? replica.phase}
    </StatusTag>
  );
}

function Exit({ code }: { code: number | null }) {
  if (code === null) return <span className="pl-faint">–</span>;
  return <span className={code === 0 ? 'pl-tone-succeeded pl-figures' : 'pl-tone-failed pl-figures'}>{code}</span>;
}

function PodName({ replica }: { replica: Replica }) {
  const { job } = useText();
  return replica.exists ? (
    <code title={replica.uid}>{replica.pod}</code>
  ) : (
    <Tooltip title={job.replicas.gone}>
      <code className="pl-faint pl-gone">{replica.pod}</code>
    </Tooltip>
  );
}

function Why({ replica }: { replica: Replica }) {
  const text = [replica.reason, replica.message].filter((part) => part !== '').join(': ');
  return text === '' ? <span className="pl-faint">–</span> : <span className="pl-wrap" translate="no">{text}</span>;
}

function Links({ replica, view }: { replica: Replica; view: JobView }) {
  const { job } = useText();
  const query = `?pod=${encodeURIComponent(replica.pod)}`;
  return (
    <span className="pl-row pl-nowrap">
      <Link to={logUrl(view, replica.replica, replica.attempt)}>{job.replicas.log}</Link>
      {replica.phase === 'Running' && <Link to={`${jobUrl(view, 'terminal')}${query}`}>{job.replicas.terminal}</Link>}
    </span>
  );
}

function ReplicaTable({ rows, colours, view }: { rows: Replica[]; colours: Map<string, number>; view: JobView }) {
  const { job } = useText();
  const words = job.replicas;
  const columns: TableColumnType<Replica>[] = [
    {
      key: 'replica',
      title: `${words.replica} · ${words.pod}`,
      width: 220,
      render: (_, replica) => (
        <span className="pl-two">
          <Name replica={replica} colour={colours.get(replica.replica) ?? 0} />
          <PodName replica={replica} />
        </span>
      ),
    },
    { key: 'phase', title: words.phase, width: 116, render: (_, replica) => <Phase replica={replica} /> },
    { key: 'exit', title: words.exit, width: 76, render: (_, replica) => <Exit code={replica.exitCode} /> },
    {
      key: 'started',
      title: words.started,
      width: 112,
      render: (_, replica) => (
        <span className="pl-two">
          <Ago time={replica.started} />
          {replica.started && <span className="pl-faint"><Duration from={replica.started} to={replica.ended} /></span>}
        </span>
      ),
    },
    {
      key: 'node',
      title: words.node,
      width: 124,
      render: (_, replica) => (
        <span className="pl-two">
          <span className="pl-wrap">{replica.node || <span className="pl-faint">–</span>}</span>
          <span className="pl-faint pl-figures">{replica.address}</span>
        </span>
      ),
    },
    { key: 'restarts', title: words.restarts, width: 76, render: (_, replica) => replica.restarts },
    { key: 'reason', title: words.reason, width: 150, render: (_, replica) => <Why replica={replica} /> },
    { key: 'links', width: 112, render: (_, replica) => <Links replica={replica} view={view} /> },
  ];
  return (
    <div className="pl-card-table">
      <Table<Replica>
        size="middle"
        rowKey="pod"
        columns={columns}
        dataSource={rows}
        pagination={false}
        scroll={rows.length > 100 ? { x: 980, y: 560 } : { x: 980 }}
        virtual={rows.length > 100}
      />
    </div>
  );
}

function ReplicaCard({ replica, colour, view }: { replica: Replica; colour: number; view: JobView }) {
  const { job } = useText();
  return (
    <article className="pl-job-card">
      <div className="pl-job-card-top">
        <Name replica={replica} colour={colour} />
        <span className="pl-push">
          <Phase replica={replica} />
        </span>
      </div>
      <PodName replica={replica} />
      {(replica.reason || replica.message) && <Why replica={replica} />}
      <div className="pl-job-card-facts">
        {replica.exitCode !== null && (
          <span>
            {job.replicas.exit} <Exit code={replica.exitCode} />
          </span>
        )}
        {replica.node && <span>{replica.node}</span>}
        {replica.started && <Duration from={replica.started} to={replica.ended} />}
        <Links replica={replica} view={view} />
      </div>
    </article>
  );
}
