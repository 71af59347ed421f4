/** All jobs there were, also those that were deleted. Rows come page by page; all of them are searched. */
import { SearchOutlined } from '@ant-design/icons';
import { Button, Input, Segmented } from 'antd';
import { useEffect, useMemo, useState } from 'react';
import { api, asApiError, type ApiError } from '../../app/api.ts';
import { useText } from '../../app/i18n.tsx';
import { Link, pathOf, useQuery } from '../../app/router.tsx';
import { useNamespace } from '../../app/session.tsx';
import { Ago, Empty, ErrorNotice, Loading, Page, Section } from '../../parts/index.ts';
import { durationText } from '../../parts/time.ts';
import { shortKind } from '../jobs/cells.tsx';
import { useIsNarrow } from '../jobs/layout.ts';
import { Outcome, outcomeText } from './Outcome.tsx';
import { shownRows, type HistoryPage, type HistoryRow } from './rows.ts';

const FEW = 200;
const PHASES = ['', 'Succeeded', 'Failed', 'Deleted'] as const;

function useHistory(namespace: string | null): { rows: HistoryRow[] | undefined; isWhole: boolean; error: ApiError | undefined } {
  const [state, setState] = useState<{ rows: HistoryRow[] | undefined; isWhole: boolean; error: ApiError | undefined }>({ rows: undefined, isWhole: false, error: undefined });
  useEffect(() => {
    if (namespace === null) return;
    const control = new AbortController();
    const read = async () => {
      let rows: HistoryRow[] = [];
      let after = '';
      do {
        const page = await api.get<HistoryPage>(`/api/history?${new URLSearchParams({ namespace, after }).toString()}`, { signal: control.signal });
        rows = [...rows, ...page.rows];
        after = page.after;
        setState({ rows, isWhole: after === '', error: undefined });
      } while (after !== '');
    };
    read().catch((error: unknown) => {
      if (!control.signal.aborted) setState((before) => ({ ...before, error: asApiError(error) }));
    });
    return () => control.abort();
  }, [namespace]);
  return state;
}

export function HistoryList() {
  const t = useText();
  const { history: words, common } = t;
  const [namespace] = useNamespace();
  const { rows, isWhole, error } = useHistory(namespace);
  const [query, setQuery] = useQuery();
  const [find, phase] = [query.get('find') ?? '', query.get('phase') ?? ''];
  const [most, setMost] = useState(FEW);
  const shown = useMemo(() => shownRows(rows ?? [], find, phase), [rows, find, phase]);
  const isNarrow = useIsNarrow();
  return (
    <Page name="history" title={words.title} description={words.about}>
      {error && <ErrorNotice error={error} />}
      {rows === undefined && !error && <Loading rows={10} />}
      {rows !== undefined && rows.length === 0 && <Empty title={words.empty} hint={words.emptyHint} />}
      {rows !== undefined && rows.length > 0 && (
        <>
          <div className="pl-row">
            <Input className="pl-search" allowClear prefix={<SearchOutlined aria-hidden />} aria-label={words.find} placeholder={words.find} value={find} onChange={(event) => setQuery({ find: event.target.value })} />
            <Segmented value={phase} onChange={(value) => setQuery({ phase: value })} options={PHASES.map((value) => ({ value, label: value === '' ? words.all : outcomeText(value, t) }))} />
            <span className="pl-faint pl-figures" data-count={shown.length}>{isWhole ? words.count(shown.length, rows.length) : words.reading(rows.length)}</span>
          </div>
          {isNarrow && shown.slice(0, most).map((row) => <HistoryCard key={row.uid} row={row} />)}
          {!isNarrow && <Section isFlush>
            <div className="pl-usage-scroll" tabIndex={0} role="region" aria-label={words.title}>
              <table className="pl-usage-table">
                <thead>
                  <tr>
                    {[words.outcome, words.name, words.kind, words.created, words.ran, words.reason].map((title) => (
                      <th scope="col" key={title}>{title}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {shown.slice(0, most).map((row) => (
                    <tr key={row.uid} data-record={row.record}>
                      <td className="pl-nowrap"><Outcome phase={row.phase} isOver={row.isOver} /></td>
                      <td><Link to={pathOf('history', row.namespace, row.record)} className="pl-job-name" translate="no">{row.name}</Link></td>
                      <td>{shortKind(row.kind)}</td>
                      <td className="pl-nowrap"><Ago time={row.created} /></td>
                      <td className="pl-nowrap pl-figures">{row.seconds === null ? '–' : durationText(row.seconds * 1000, common)}</td>
                      <td className="pl-faint pl-history-reason" translate="no" title={row.reason}>{row.reason}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </Section>}
          {shown.length === 0 && <Empty title={words.noMatch} />}
          {shown.length > most && <p className="pl-padded"><Button onClick={() => setMost(most * 5)}>{words.more(shown.length - most)}</Button></p>}
        </>
      )}
    </Page>
  );
}

/** A record on a phone. */
function HistoryCard({ row }: { row: HistoryRow }) {
  const { common } = useText();
  return (
    <article className="pl-job-card" data-record={row.record}>
      <div className="pl-job-card-top">
        <Link to={pathOf('history', row.namespace, row.record)} className="pl-job-name" translate="no">{row.name}</Link>
        <Outcome phase={row.phase} isOver={row.isOver} />
      </div>
      {row.reason !== '' && <span className="pl-faint pl-history-reason" translate="no" title={row.reason}>{row.reason}</span>}
      <div className="pl-job-card-facts">
        <span>{shortKind(row.kind)}</span>
        {row.seconds !== null && <span className="pl-figures">{durationText(row.seconds * 1000, common)}</span>}
        <Ago time={row.created} />
      </div>
    </article>
  );
}
