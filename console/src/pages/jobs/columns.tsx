/** The columns of the job list. */
import { BellOutlined } from '@ant-design/icons';
import { Dropdown, type TableColumnType } from 'antd';
import { useState, type MouseEvent, type ReactNode } from 'react';
import { cloneUrl, ICONS } from '../../actions/ActionButtons.tsx';
import type { ActionName } from '../../actions/types.ts';
import type { Words } from '../../app/i18n.tsx';
import { Link, navigate } from '../../app/router.tsx';
import type { Row } from '../../app/rows.ts';
import { Ago, Duration, StatusTag } from '../../parts/index.ts';
import { useWatch } from '../../watches/useWatch.ts';
import { jobUrl, pairText, ProgressCell, ReplicasCell, shortKind } from './cells.tsx';
import { readProgress } from './progress.ts';

export type ColumnKey = Exclude<keyof Words['jobs']['column'], 'actions'>;

export const ALL_COLUMNS: ColumnKey[] = ['phase', 'name', 'namespace', 'kind', 'replicas', 'progress', 'cpu', 'memory', 'devices', 'queue', 'priority', 'restarts', 'duration', 'created', 'labels'];
export const USUAL_COLUMNS: ColumnKey[] = ['phase', 'name', 'kind', 'replicas', 'progress', 'cpu', 'memory', 'devices', 'queue', 'duration', 'created'];
/** They are always there. */
export const FIXED_COLUMNS: ColumnKey[] = ['phase', 'name'];

const WIDTHS: Record<ColumnKey, number> = {
  phase: 122,
  name: 158,
  namespace: 104,
  kind: 92,
  replicas: 74,
  progress: 180,
  cpu: 76,
  memory: 100,
  devices: 48,
  queue: 66,
  priority: 76,
  restarts: 80,
  duration: 94,
  created: 94,
  labels: 200,
};
const ACTIONS_WIDTH = 42;
const SELECTION_WIDTH = 40;
const NOT_SORTED: ColumnKey[] = ['progress', 'labels'];

/** The columns to show: of the URL, if it has any, else as they were chosen; unknown ones are dropped, fixed ones stay. */
export function chosenColumns(parameter: string | null, kept: readonly string[]): ColumnKey[] {
  const named = (parameter ?? '').split(',').filter((key) => ALL_COLUMNS.some((column) => column === key));
  const wanted = new Set<string>(named.length === 0 ? kept : named);
  return ALL_COLUMNS.filter((key) => FIXED_COLUMNS.includes(key) || wanted.has(key));
}

/** The usual columns without those in which no job has a value. */
export function usefulColumns(rows: readonly Row[], isAllNamespaces: boolean): ColumnKey[] {
  const has: Partial<Record<ColumnKey, boolean>> = {
    namespace: isAllNamespaces,
    progress: rows.some((row) => readProgress(row.progress) !== null),
    devices: rows.some((row) => Object.keys(row.devices).length > 0),
    queue: rows.some((row) => row.queue !== ''),
  };
  return ALL_COLUMNS.filter((key) => has[key] ?? USUAL_COLUMNS.includes(key));
}

function render(key: ColumnKey, row: Row) {
  switch (key) {
    case 'phase':
      return <StatusTag phase={row.phase} />;
    case 'name':
      return (
        <Link to={jobUrl(row)} className="pl-job-name" title={row.name} tabIndex={-1}>
          {row.name}
        </Link>
      );
    case 'kind':
      return <span title={row.kind}>{shortKind(row.kind)}</span>;
    case 'replicas':
      return <ReplicasCell row={row} />;
    case 'progress':
      return <ProgressCell progress={row.progress} phase={row.phase} />;
    case 'cpu':
      return <span className="pl-nowrap pl-figures">{pairText(row.cpuRequest, row.cpuLimit, false)}</span>;
    case 'memory':
      return <span className="pl-nowrap pl-figures">{pairText(row.memoryRequest, row.memoryLimit, true)}</span>;
    case 'devices':
      return <Devices devices={row.devices} />;
    case 'duration':
      return row.started === '' ? <span className="pl-faint">–</span> : <Duration from={row.started} to={row.ended} />;
    case 'created':
      return <Ago time={row.created} />;
    case 'labels':
      return <Labels labels={row.labels} />;
    case 'restarts':
      return row.restarts === 0 ? <span className="pl-faint">0</span> : row.restarts;
    default:
      return row[key] === '' ? <span className="pl-faint">–</span> : row[key];
  }
}

function Devices({ devices }: { devices: Record<string, number> }) {
  const entries = Object.entries(devices);
  if (entries.length === 0) return <span className="pl-faint">–</span>;
  return <span title={entries.map(([name, count]) => `${name}: ${count}`).join(', ')}>{entries.reduce((sum, [, count]) => sum + count, 0)}</span>;
}

function Labels({ labels }: { labels: Record<string, string> }) {
  const text = Object.entries(labels)
    .map(([key, value]) => (value === '' ? key : `${key}=${value}`))
    .join(', ');
  return text === '' ? <span className="pl-faint">–</span> : <span title={text}>{text}</span>;
}

/** The actions that make sense for a job in this phase; the server has the last word. */
export function rowActions(phase: string): ActionName[] {
  if (phase === 'Succeeded' || phase === 'Failed') return ['rerun', 'debug', 'delete'];
  if (phase === 'Paused') return ['resume', 'restart', 'rerun', 'delete'];
  return ['pause', 'stop', 'restart', 'rerun', 'delete'];
}

/** The box that selects a row. Rows come and go with every key in the search, so it is the browser's own: antd's takes longer than the rest of its row. */
export function RowBox({ row, isSelected, onSelect, label }: { row: Row; isSelected: boolean; onSelect: (row: Row) => void; label: string }) {
  return <input type="checkbox" className="pl-check" checked={isSelected} onChange={() => onSelect(row)} onClick={(event) => event.stopPropagation()} aria-label={label} />;
}

interface MenuProps {
  row: Row;
  words: Words['actions'];
  onAction: (action: ActionName, row: Row) => void;
}

// A row is drawn often and its menu seldom opened: the menu is made at the first click.
export function RowMenu(props: MenuProps) {
  const { row, words } = props;
  const [isOpen, setOpen] = useState<boolean>();
  const open = (event: MouseEvent) => {
    event.stopPropagation();
    setOpen(true);
  };
  const button = (
    <button type="button" className="pl-row-menu" aria-label={`${words.more}: ${row.name}`} aria-haspopup="menu" onClick={open}>
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden>
        <path d="M8 3v.01M8 8v.01M8 13v.01" />
      </svg>
    </button>
  );
  return isOpen === undefined ? button : <OpenMenu {...props} isOpen={isOpen} setOpen={setOpen} button={button} />;
}

function OpenMenu({ row, words, onAction, isOpen, setOpen, button }: MenuProps & { isOpen: boolean; setOpen: (isOpen: boolean) => void; button: ReactNode }) {
  const { isWatched, toggle } = useWatch();
  const isOver = row.phase === 'Succeeded' || row.phase === 'Failed';
  const items = () => [
    { key: 'logs', label: words.logs },
    ...(isOver ? [] : [{ key: 'watch', label: isWatched(row.uid) ? words.watch.stop : words.watch.start, icon: <BellOutlined /> }]),
    ...rowActions(row.phase).filter((action) => action !== 'delete').map((action) => ({ key: action, label: words.names[action], icon: ICONS[action] })),
    { key: 'clone', label: words.clone },
    { type: 'divider' as const },
    { key: 'delete', label: `${words.names.delete}…`, icon: ICONS.delete, danger: true },
  ];
  const choose = (key: string) => {
    if (key === 'logs') navigate(jobUrl(row, 'logs'));
    else if (key === 'clone') navigate(cloneUrl(row));
    else if (key === 'watch') toggle(row);
    else onAction(key as ActionName, row);
  };
  return (
    <Dropdown
      open={isOpen}
      onOpenChange={setOpen}
      trigger={['click']}
      placement="bottomRight"
      menu={{
        items: items(),
        onClick: ({ key, domEvent }) => {
          domEvent.stopPropagation();
          setOpen(false);
          choose(key);
        },
      }}
    >
      {button}
    </Dropdown>
  );
}

interface Options {
  keys: ColumnKey[];
  words: Words;
  sort: string;
  onAction: (action: ActionName, row: Row) => void;
  /** The box of a row, and the one in the header. */
  box: (row: Row) => ReactNode;
  allBox: ReactNode;
}

export function tableColumns({ keys, words, sort, onAction, box, allBox }: Options): TableColumnType<Row>[] {
  const sorted = sort.replace(/^-/, '');
  // Not antd's own selection: that one walks through all rows at every change.
  const selection: TableColumnType<Row> = { key: 'select', width: SELECTION_WIDTH, title: allBox, className: 'pl-select', render: (_: unknown, row: Row) => box(row) };
  const columns: TableColumnType<Row>[] = keys.map((key) => ({
    key,
    title: words.jobs.column[key],
    width: WIDTHS[key],
    ellipsis: key !== 'phase' && key !== 'progress',
    sorter: !NOT_SORTED.includes(key),
    sortOrder: sorted === key ? (sort.startsWith('-') ? ('descend' as const) : ('ascend' as const)) : null,
    showSorterTooltip: false,
    render: (_: unknown, row: Row) => render(key, row),
  }));
  columns.unshift(selection);
  columns.push({
    key: 'actions',
    width: ACTIONS_WIDTH,
    title: <span className="pl-hidden">{words.jobs.column.actions}</span>,
    render: (_: unknown, row: Row) => <RowMenu row={row} words={words.actions} onAction={onAction} />,
  });
  return columns;
}

export function totalWidth(keys: ColumnKey[]): number {
  return keys.reduce((sum, key) => sum + WIDTHS[key], ACTIONS_WIDTH + SELECTION_WIDTH);
}
