import { SearchOutlined } from '@ant-design/icons';
import { Checkbox, Input, Table, Tooltip, type TableColumnType } from 'antd';
import { useState } from 'react';
import { useText } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';
import { Ago, Duration, Empty, Facts } from '../../parts/index.ts';
import { jobUrl } from '../jobs/cells.tsx';
import { useIsNarrow } from '../jobs/layout.ts';
import { explained, Why } from './explained.tsx';
import { PhaseTag } from './PhaseTag.tsx';
import { filterContainers } from './rows.ts';
import { serviceLogUrl } from './tabs.ts';
import type { AppContainer, AppView } from './view.ts';

/** The containers behind the services: where each runs, of which image, and how it is. */
export function Containers({ view }: { view: AppView }) {
  const { apps, common } = useText();
  const words = apps.containers;
  const isNarrow = useIsNarrow();
  const [text, setText] = useState('');
  const [hasStages, setStages] = useState(false);
  const rows = filterContainers(view.containers, text, hasStages);
  if (view.containers.length === 0) return <Empty title={words.none} hint={apps.services.noneHint} />;
  return (
    <div className="pl-stack">
      <div className="pl-row">
        <Input className="pl-search" allowClear prefix={<SearchOutlined aria-hidden />} aria-label={words.find} placeholder={words.find} value={text} onChange={(event) => setText(event.target.value)} />
        <Checkbox checked={hasStages} onChange={(event) => setStages(event.target.checked)}>
          {words.stages}
        </Checkbox>
      </div>
      {rows.length === 0 ? <Empty title={common.empty.noMatch} /> : isNarrow ? rows.map((row) => <ContainerCard key={row.id} row={row} view={view} />) : <ContainerTable rows={rows} view={view} />}
    </div>
  );
}

function Place({ row }: { row: AppContainer }) {
  if (row.address === '') return <span className="pl-faint">–</span>;
  return <code>{row.ports.length > 0 ? `${row.address}:${row.ports.join(',')}` : row.address}</code>;
}

function PodName({ row }: { row: AppContainer }) {
  const { apps } = useText();
  if (row.exists) return <code title={row.uid}>{row.pod}</code>;
  return (
    <Tooltip title={apps.containers.gone}>
      <code className="pl-faint pl-gone">{row.pod}</code>
    </Tooltip>
  );
}

function whyOf(row: AppContainer): string {
  return row.state === 'Succeeded' ? '' : [row.reason, row.message].filter((part) => part !== '' && part !== 'Completed').join(': ');
}

function Links({ row, view }: { row: AppContainer; view: AppView }) {
  const { apps } = useText();
  const terminal = `${jobUrl({ namespace: view.namespace, kind: view.jobKind, name: view.jobName }, 'terminal')}?${new URLSearchParams({ pod: row.pod, container: row.container }).toString()}`;
  return (
    <span className="pl-row pl-nowrap">
      <Link to={serviceLogUrl(view, row.isStage ? `${row.service}/${row.container}` : row.service)}>{apps.services.log}</Link>
      {row.group === 'job' && row.state === 'Running' && !row.isStage && <Link to={terminal}>{apps.containers.terminal}</Link>}
    </span>
  );
}

function ContainerTable({ rows, view }: { rows: AppContainer[]; view: AppView }) {
  const { apps } = useText();
  const words = apps.containers;
  const columns: TableColumnType<AppContainer>[] = [
    {
      key: 'container',
      title: words.container,
      render: (_, row) => (
        <span className="pl-app-lines pl-app-name">
          <strong>{row.container}</strong>
          <PodName row={row} />
        </span>
      ),
    },
    { key: 'service', title: words.service, render: (_, row) => row.service || '–' },
    { key: 'state', title: words.state, render: (_, row) => <PhaseTag phase={row.state} /> },
    { key: 'exit', title: words.exit, render: (_, row) => <span className="pl-figures">{row.exitCode ?? '–'}</span> },
    { key: 'restarts', title: words.restarts, render: (_, row) => <span className="pl-figures">{row.restarts}</span> },
    { key: 'node', title: words.node, render: (_, row) => row.node || '–' },
    { key: 'address', title: words.address, render: (_, row) => <Place row={row} /> },
    { key: 'image', title: words.image, render: (_, row) => <code className="pl-wrap pl-app-image">{row.image || '–'}</code> },
    { key: 'started', title: words.started, render: (_, row) => (row.started === null ? '–' : <Ago time={row.started} />) },
    { key: 'duration', title: words.duration, render: (_, row) => (row.started === null ? '–' : <Duration from={row.started} to={row.ended} />) },
    { key: 'links', title: '', render: (_, row) => <Links row={row} view={view} /> },
  ];
  return (
    <div className="pl-card-table pl-table-scroll pl-app-table">
      <Table<AppContainer> size="middle" rowKey="id" columns={columns} dataSource={rows} expandable={explained(rows, (row) => row.id, whyOf)} pagination={rows.length > 100 ? { pageSize: 100 } : false} onRow={(row) => ({ 'data-container': row.container, 'data-service': row.service }) as object} />
    </div>
  );
}

function ContainerCard({ row, view }: { row: AppContainer; view: AppView }) {
  const { apps } = useText();
  const words = apps.containers;
  return (
    <article className="pl-app-part" data-container={row.container} data-service={row.service}>
      <header className="pl-row">
        <strong>{row.container}</strong>
        <span className="pl-soft">{row.service}</span>
        <PhaseTag phase={row.state} />
        <span className="pl-push">
          <Links row={row} view={view} />
        </span>
      </header>
      <Why text={whyOf(row)} />
      <Facts
        items={[
          [words.pod, <PodName key="p" row={row} />],
          [words.image, <code key="i">{row.image || '–'}</code>],
          [words.node, row.node || '–'],
          [words.address, <Place key="a" row={row} />],
          [words.exit, row.exitCode ?? '–'],
          [words.restarts, row.restarts],
        ]}
      />
    </article>
  );
}
