import { DiffOutlined, DownOutlined, PlusOutlined } from '@ant-design/icons';
import { Button, Checkbox, Dropdown, Table, type InputRef, type TableRef } from 'antd';
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { ActionDialog, type ActionRequest } from '../../actions/ActionDialog.tsx';
import { ICONS } from '../../actions/ActionButtons.tsx';
import type { ActionName } from '../../actions/types.ts';
import { useRows } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { useShortcut } from '../../app/keys.tsx';
import { useChoice } from '../../app/preferences.ts';
import { navigate, useQuery } from '../../app/router.tsx';
import type { Row } from '../../app/rows.ts';
import { useNamespace } from '../../app/session.tsx';
import { Empty, ErrorNotice, Loading, Page } from '../../parts/index.ts';
import { compareUrl } from '../compare/choice.ts';
import { jobUrl, ReasonLine, shortKind } from './cells.tsx';
import { chosenColumns, RowBox, tableColumns, totalWidth, usefulColumns, type ColumnKey } from './columns.tsx';
import { facetsOf, filterRows, KINDS, NO_FILTER, readFilter, sortRows, type JobFilter } from './filter.ts';
import { ColumnChoice, FilterBar } from './FilterBar.tsx';
import { JobCard } from './JobCard.tsx';
import { useIsNarrow, useSize } from './layout.ts';
import { SavedViews } from './SavedViews.tsx';
import { addressParameters, queryOf, viewParameters } from './savedViews.ts';
import { StartCards } from './StartCards.tsx';

/** Above this number only the newest are shown. */
const MOST = 20_000;

export default function JobsPage() {
  const t = useText();
  const [namespace, chooseNamespace] = useNamespace();
  const { data, error, revision } = useRows(namespace);
  const [query, setQuery] = useQuery();
  const filter = useMemo(() => readFilter(query), [query]);
  const isNarrow = useIsNarrow();
  const rows = useMemo(() => (data === undefined ? undefined : newest(data)), [data]);
  // Sorted before filtered: the order of 10,000 rows does not change while somebody types.
  const sorted = useMemo(() => sortRows(rows ?? [], filter.sort), [rows, filter.sort]);
  const shown = useMemo(() => filterRows(sorted, filter), [sorted, filter]);
  const facets = useMemo(() => facetsOf(rows ?? []), [rows]);
  const [keptColumns, keepColumns] = useChoice<ColumnKey[] | null>('jobs.columns', null);
  const useful = useMemo(() => usefulColumns(rows ?? [], namespace === ''), [rows, namespace]);
  const columnsOfUrl = query.get('columns');
  const columns = useMemo(() => chosenColumns(columnsOfUrl, keptColumns ?? useful), [columnsOfUrl, keptColumns, useful]);
  const searchRef = useRef<InputRef>(null);
  const namedColumns = columnsOfUrl ?? keptColumns?.join(',') ?? null;
  const latest = useLatest({ filter, namedColumns, namespace });
  const change = useCallback(
    (patch: Partial<JobFilter>) => {
      const { filter: before, namedColumns: named, namespace: project } = latest.current;
      setQuery(addressParameters({ ...before, ...patch }, named, project));
    },
    [latest, setQuery],
  );
  const chooseColumns = useCallback(
    (keys: ColumnKey[] | null) => {
      keepColumns(keys);
      setQuery(addressParameters(latest.current.filter, keys === null ? null : keys.join(','), latest.current.namespace));
    },
    [latest, keepColumns, setQuery],
  );
  // A link to a project leads there: the pages that follow show the same one.
  useEffect(() => {
    if (query.has('namespace')) chooseNamespace(namespace);
  }, [query, namespace]);
  useShortcut('/', t.jobs.keys.search, () => searchRef.current?.focus());

  return (
    <Page
      name="jobs"
      title={t.jobs.title}
      revision={revision}
      isFull
      heading={
        <div className="pl-row">
          <h1>{t.jobs.title}</h1>
          {rows !== undefined && rows.length > 0 && (
            <span className="pl-faint pl-figures" data-count={shown.length}>
              {t.jobs.count(shown.length, data?.length ?? 0)}
              {data !== undefined && data.length > MOST && ` ${t.jobs.newest(MOST)}`}
            </span>
          )}
        </div>
      }
      actions={
        <>
          {rows !== undefined && <SavedViews query={queryOf(viewParameters(filter, namedColumns, namespace))} isNarrow={isNarrow} />}
          {!isNarrow && rows !== undefined && rows.length > 0 && <ColumnChoice columns={columns} onColumns={chooseColumns} />}
          <NewJob />
        </>
      }
    >
      {error && <ErrorNotice error={error} />}
      {rows === undefined ? (
        !error && <Loading rows={12} />
      ) : rows.length === 0 ? (
        <EmptyList />
      ) : (
        <>
          <FilterBar filter={filter} facets={facets} total={rows.length} onChange={change} searchRef={searchRef} isNarrow={isNarrow} />
          <List rows={shown} filter={filter} columns={columns} onChange={change} isNarrow={isNarrow} />
        </>
      )}
    </Page>
  );
}

/** The values of the last render, for functions that stay the same from render to render. */
function useLatest<T>(value: T): { readonly current: T } {
  const ref = useRef(value);
  useLayoutEffect(() => {
    ref.current = value;
  });
  return ref;
}

function newest(rows: Row[]): Row[] {
  return rows.length <= MOST ? rows : sortRows(rows, '-created').slice(0, MOST);
}

const NewJob = memo(function NewJob() {
  const t = useText();
  const items = [
    ...KINDS.map((kind) => ({ key: `/create/${kind}`, label: shortKind(kind) })),
    { type: 'divider' as const },
    { key: '/train', label: t.jobs.train },
    { key: '/create', label: t.jobs.fromYaml },
  ];
  return (
    <Dropdown trigger={['click']} placement="bottomRight" menu={{ items, onClick: ({ key }) => navigate(key) }}>
      <Button type="primary" icon={<PlusOutlined />}>
        {t.jobs.create} <DownOutlined />
      </Button>
    </Dropdown>
  );
});

function EmptyList() {
  const { jobs } = useText();
  return (
    <Empty title={jobs.emptyTitle} hint={jobs.emptyHint}>
      <StartCards cards={['train', 'form', 'yaml']} />
    </Empty>
  );
}

interface ListProps {
  rows: Row[];
  filter: JobFilter;
  columns: ColumnKey[];
  onChange: (patch: Partial<JobFilter>) => void;
  isNarrow: boolean;
}

function List({ rows, filter, columns: keys, onChange, isNarrow }: ListProps) {
  const t = useText();
  const [sizeRef, size] = useSize();
  const tableRef = useRef<TableRef>(null);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [cursor, setCursor] = useState<string>();
  const [request, setRequest] = useState<ActionRequest | null>(null);
  const chosen = useMemo(() => rows.filter((row) => selected.has(row.uid)), [rows, selected]);

  const toggle = useCallback((row: Row) => {
    setSelected((before) => {
      const next = new Set(before);
      if (!next.delete(row.uid)) next.add(row.uid);
      return next;
    });
  }, []);
  const ask = useCallback((action: ActionName, row: Row) => setRequest({ action, targets: [row] }), []);
  const move = (step: number) => {
    const index = rows.findIndex((row) => row.uid === cursor);
    const next = rows[Math.min(rows.length - 1, Math.max(0, index + step))];
    if (next === undefined) return;
    setCursor(next.uid);
    tableRef.current?.scrollTo({ key: next.uid });
  };
  const pointed = rows.find((row) => row.uid === cursor);
  useShortcut('j', t.jobs.keys.next, () => move(1));
  useShortcut('k', t.jobs.keys.previous, () => move(-1));
  useShortcut('x', t.jobs.keys.select, () => pointed && toggle(pointed));
  useShortcut('Enter', t.jobs.keys.open, () => pointed && navigate(jobUrl(pointed)));

  const latestRows = useLatest(rows);
  const isAll = rows.length > 0 && chosen.length === rows.length;
  const isSome = chosen.length > 0 && !isAll;
  const names = keys.join();
  // The same columns from key to key in the search, so that the header is not drawn again.
  const columns = useMemo(
    () =>
      isNarrow
        ? [{ key: 'card', render: (_: unknown, row: Row) => <JobCard row={row} isSelected={selected.has(row.uid)} onSelect={toggle} onAction={ask} /> }]
        : tableColumns({
            keys: names.split(',') as ColumnKey[],
            words: t,
            sort: filter.sort,
            onAction: ask,
            box: (row) => <RowBox row={row} isSelected={selected.has(row.uid)} onSelect={toggle} label={t.jobs.select(row.name)} />,
            allBox: (
              <Checkbox
                checked={isAll}
                indeterminate={isSome}
                onChange={(event) => setSelected(new Set(event.target.checked ? latestRows.current.map((row) => row.uid) : []))}
                aria-label={t.jobs.selectAll}
              />
            ),
          }),
    [isNarrow, names, t, filter.sort, selected, isAll, isSome, toggle, ask, latestRows],
  );
  const explained = useMemo(() => (isNarrow ? [] : rows.filter((row) => row.reason !== '').map((row) => row.uid)), [rows, isNarrow]);
  const width = Math.max(totalWidth(keys), size.width);

  return (
    <>
      <div className={isNarrow ? 'pl-job-list pl-job-list-cards pl-live' : 'pl-job-list pl-live'} ref={sizeRef}>
        {rows.length === 0 ? (
          <Empty title={t.jobs.noMatch} hint={t.jobs.noMatchHint}>
            <Button onClick={() => onChange(NO_FILTER)}>{t.jobs.clear}</Button>
          </Empty>
        ) : (
          size.height > 0 && (
            <Table<Row>
              ref={tableRef}
              virtual
              size="middle"
              rowKey="uid"
              showHeader={!isNarrow}
              columns={columns}
              dataSource={rows}
              pagination={false}
              scroll={isNarrow ? { y: size.height, x: size.width } : { y: size.height - 40, x: width }}
              rowClassName={(row) => `${row.uid === cursor ? 'pl-cursor' : ''} ${selected.has(row.uid) ? 'pl-selected' : ''}`}
              onRow={(row) => ({ onClick: (event) => open(event, row) })}
              onChange={(_, __, sorter) => !Array.isArray(sorter) && onChange({ sort: sortOf(sorter.columnKey, sorter.order) })}
              {...(isNarrow
                ? {}
                : {
                    expandable: {
                      expandedRowKeys: explained,
                      showExpandColumn: false,
                      expandedRowRender: (row: Row) => <ReasonLine row={row} />,
                      expandedRowClassName: () => 'pl-reason-row',
                    },
                  })}
            />
          )
        )}
      </div>
      <BulkBar rows={chosen} onClear={() => setSelected(new Set())} onAction={(action) => setRequest({ action, targets: chosen })} />
      <ActionDialog
        request={request}
        onClose={() => setRequest(null)}
        onDone={(done) => {
          if (done.targets.length > 1 || done.action === 'delete') setSelected(new Set());
        }}
      />
    </>
  );
}

function open(event: React.MouseEvent, row: Row): void {
  const target = event.target as HTMLElement;
  // Links, boxes and menus have a meaning of their own; so has a text that is being selected.
  if (target.closest('a, button, input, label, .pl-select, .ant-dropdown') || window.getSelection()?.toString()) return;
  navigate(jobUrl(row));
}

function sortOf(key: React.Key | undefined, order: 'ascend' | 'descend' | null | undefined): string {
  if (!order || key === undefined) return '-created';
  return order === 'descend' ? `-${String(key)}` : String(key);
}

const BULK: ActionName[] = ['pause', 'resume', 'stop', 'delete'];

function BulkBar({ rows, onAction, onClear }: { rows: Row[]; onAction: (action: ActionName) => void; onClear: () => void }) {
  const t = useText();
  if (rows.length === 0) return null;
  return (
    <div className="pl-bulk" role="toolbar" aria-label={t.actions.title}>
      <strong>{t.jobs.selected(rows.length)}</strong>
      {BULK.map((action) => (
        <Button key={action} size="small" icon={ICONS[action]} danger={action === 'delete'} onClick={() => onAction(action)} data-action={action}>
          {action === 'delete' ? `${t.actions.names.delete}…` : t.actions.names[action]}
        </Button>
      ))}
      {rows.length > 1 && (
        <Button size="small" icon={<DiffOutlined />} onClick={() => navigate(compareUrl(rows))} data-action="compare">
          {t.compare.action}
        </Button>
      )}
      <Button size="small" type="text" onClick={onClear}>
        {t.jobs.clearSelection}
      </Button>
    </div>
  );
}
