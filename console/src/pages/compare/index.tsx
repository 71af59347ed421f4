/** Several jobs side by side: what differs between them, what came out, and their curves together. */
import { CopyOutlined, DownloadOutlined } from '@ant-design/icons';
import { Alert, Button, Checkbox, Select, Tag } from 'antd';
import { useMemo, useState } from 'react';
import { cloneUrl } from '../../actions/ActionButtons.tsx';
import { api } from '../../app/api.ts';
import { useRows } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { Link, useQuery } from '../../app/router.tsx';
import { useNamespace } from '../../app/session.tsx';
import { CurvePanel } from '../../curves/CurvePanel.tsx';
import { bestIndex, bestOf, finite, type JobCurves } from '../../curves/data.ts';
import { readCurves, usePolled } from '../../curves/useCurves.ts';
import { Duration, Empty, ErrorNotice, Loading, Page, replicaColour, Section, StatusTag } from '../../parts/index.ts';
import { plainNumber } from '../../parts/chart/series.ts';
import { jobUrl } from '../jobs/cells.tsx';
import { keyOf, MOST, readJobs, shownNames, type ComparedJob } from './choice.ts';
import { compareFields, csvText } from './fields.ts';

interface JobObject {
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
}

interface Column {
  job: ComparedJob;
  name: string;
  object: JobObject | null;
  curves: JobCurves | null;
}

const READERS = 4;

export default function ComparePage() {
  const t = useText();
  const [query, setQuery] = useQuery();
  const all = readJobs(query.get('jobs'));
  const jobs = all.slice(0, MOST);
  const choose = (next: readonly ComparedJob[]) => setQuery({ jobs: next.map(keyOf).join(',') });
  return (
    <Page name="compare" title={t.compare.title} description={jobs.length < 2 ? t.compare.hint : undefined}>
      <Picker jobs={jobs} onChange={choose} />
      {all.length > MOST && <Alert type="info" showIcon title={t.compare.tooMany(MOST)} />}
      {jobs.length === 0 ? <Empty title={t.compare.none} hint={t.compare.hint} /> : <Comparison jobs={jobs} />}
    </Page>
  );
}

function Picker({ jobs, onChange }: { jobs: ComparedJob[]; onChange: (jobs: ComparedJob[]) => void }) {
  const { compare } = useText();
  const [namespace] = useNamespace();
  const { data } = useRows(namespace);
  const names = shownNames(jobs);
  const chosen = new Set(jobs.map(keyOf));
  const options = (data ?? []).filter((row) => !chosen.has(keyOf(row))).slice(0, 2000).map((row) => ({ value: keyOf(row), label: row.name }));
  return (
    <div className="pl-row pl-compare-jobs">
      {jobs.map((job, index) => (
        <Tag key={keyOf(job)} closable={{ closeIcon: '✕', 'aria-label': compare.remove(names[index] ?? job.name) }} onClose={() => onChange(jobs.filter((other) => other !== job))}>
          <span className="pl-compare-dot" style={{ background: replicaColour(index) }} aria-hidden />
          {names[index]}
        </Tag>
      ))}
      <Select showSearch={{ optionFilterProp: 'label' }} className="pl-facet" value={null} placeholder={compare.add} aria-label={compare.add} popupMatchSelectWidth={false} options={options} onChange={(value: string | null) => onChange([...jobs, ...readJobs(value)])} />
    </div>
  );
}

function Comparison({ jobs }: { jobs: ComparedJob[] }) {
  const { compare, curves } = useText();
  const [onlyDifferent, setOnlyDifferent] = useState(true);
  const { data, error, refresh } = usePolled(jobs.map(keyOf).join(','), (signal) => readAll(jobs, signal), false);
  const names = shownNames(jobs);
  if (data === undefined) return error ? <ErrorNotice error={error} extra={<Button onClick={refresh}>{curves.refresh}</Button>} /> : <Loading rows={12} />;
  const columns = data.map((column, index) => ({ ...column, name: names[index] ?? column.job.name }));
  return (
    <>
      <Values columns={columns} onlyDifferent={onlyDifferent} extra={<Checkbox checked={onlyDifferent} onChange={(event) => setOnlyDifferent(event.target.checked)}>{compare.onlyDifferent}</Checkbox>} />
      <Results columns={columns} />
      <Section title={compare.curves}>
        <Together columns={columns} />
      </Section>
    </>
  );
}

/** Read the jobs and their curves, a few at a time. A job that is gone is said to be gone. */
async function readAll(jobs: readonly ComparedJob[], signal: AbortSignal): Promise<Omit<Column, 'name'>[]> {
  const columns: Omit<Column, 'name'>[] = jobs.map((job) => ({ job, object: null, curves: null }));
  const pending = [...columns.keys()];
  const work = async () => {
    for (let index = pending.shift(); index !== undefined; index = pending.shift()) {
      const column = columns[index] as Omit<Column, 'name'>;
      column.object = await api.get<JobObject>(objectPath(column.job), { signal }).catch(() => null);
      if (column.object !== null) column.curves = await readCurves(column.job, { points: '500' }, signal).catch(() => null);
    }
  };
  await Promise.all(Array.from({ length: READERS }, work));
  return columns;
}

const PLURALS: Record<string, string> = { DeepspeedJob: 'deepspeed-jobs' };

function objectPath({ namespace, kind, name }: ComparedJob): string {
  const plural = PLURALS[kind] ?? `${kind.toLowerCase()}s`;
  return `/k8s/apis/batch.tensorstack.dev/v1beta1/namespaces/${encodeURIComponent(namespace)}/${encodeURIComponent(plural)}/${encodeURIComponent(name)}`;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function Heads({ columns, first }: { columns: Column[]; first: string }) {
  const { compare } = useText();
  return (
    <thead>
      <tr>
        <th scope="col">{first}</th>
        {columns.map(({ job, name, object }, index) => (
          <th scope="col" key={keyOf(job)}>
            <span className="pl-compare-dot" style={{ background: replicaColour(index) }} aria-hidden />
            <Link to={jobUrl(job)}>{name}</Link>
            {object === null && <div className="pl-faint">{compare.gone}</div>}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Values({ columns, onlyDifferent, extra }: { columns: Column[]; onlyDifferent: boolean; extra: React.ReactNode }) {
  const { compare } = useText();
  const rows = useMemo(() => compareFields(columns.map(({ object }) => object?.spec ?? {})), [columns]);
  const different = rows.filter((row) => row.differs);
  const shown = onlyDifferent ? different : rows;
  const save = () => download('compare.csv', csvText([[compare.field, ...columns.map(({ name }) => name)], ...shown.map((row) => [row.path, ...row.values])]));
  return (
    <Section title={compare.values} hint={columns.length > 1 ? compare.differs(different.length) : undefined} isFlush extra={<div className="pl-row">{extra}<Button size="small" icon={<DownloadOutlined />} onClick={save}>{compare.download}</Button></div>}>
      {shown.length === 0 ? (
        <p className="pl-padded pl-soft">{compare.same}</p>
      ) : (
        <div className="pl-compare-table" data-table="values">
          <table>
            <Heads columns={columns} first={compare.field} />
            <tbody>
              {shown.map((row) => (
                <tr key={row.path}>
                  <th scope="row"><code>{row.path}</code></th>
                  {row.values.map((value, index) => (
                    <td key={index} className={row.differs ? 'pl-compare-differs' : undefined}>{value === null ? <span className="pl-faint">–</span> : <span className="pl-compare-value" translate="no">{value}</span>}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

/** How the jobs ended, and the best value of each metric; the best of all is marked. */
function Results({ columns }: { columns: Column[] }) {
  const { compare } = useText();
  const tags = [...new Set(columns.flatMap(({ curves }) => curves?.runs.flatMap((run) => run.scalars.map((scalar) => scalar.tag)) ?? []))].sort();
  return (
    <Section title={compare.results} isFlush>
      <div className="pl-compare-table" data-table="results">
        <table>
          <Heads columns={columns} first={compare.field} />
          <tbody>
            <tr>
              <th scope="row">{compare.rows.phase}</th>
              {columns.map(({ job, object }) => <td key={keyOf(job)}>{object && <StatusTag phase={text(object.status?.phase)} />}</td>)}
            </tr>
            <tr>
              <th scope="row">{compare.rows.duration}</th>
              {columns.map(({ job, object }) => <td key={keyOf(job)} className="pl-figures">{text(object?.status?.startTime) !== '' && <Duration from={text(object?.status?.startTime)} to={text(object?.status?.completionTime) || null} />}</td>)}
            </tr>
            {tags.map((tag) => <MetricRow key={tag} tag={tag} columns={columns} />)}
            <tr>
              <th scope="row">{compare.clone}</th>
              {columns.map(({ job, object }) => <td key={keyOf(job)}>{object && <Link to={cloneUrl(job)}><CopyOutlined aria-hidden /> {compare.clone}</Link>}</td>)}
            </tr>
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function MetricRow({ tag, columns }: { tag: string; columns: Column[] }) {
  const { compare, curves: words } = useText();
  const values = columns.map(({ curves }) => {
    const scalars = curves?.runs.flatMap((run) => run.scalars.filter((scalar) => scalar.tag === tag)) ?? [];
    const bests = scalars.map((scalar) => finite((bestOf(scalar) ?? scalar.last).value));
    const place = bestIndex(tag, bests) ?? 0;
    return bests[place] ?? null;
  });
  const best = bestIndex(tag, values);
  return (
    <tr data-metric={tag}>
      <th scope="row">{tag} <span className="pl-faint">{best === null ? words.last : words.best}</span></th>
      {values.map((value, index) => (
        <td key={index} className="pl-figures">
          {value === null ? <span className="pl-faint">–</span> : plainNumber(value)}
          {best !== null && value === values[best] && columns.length > 1 && <span className="pl-best"> ★ {compare.best}</span>}
        </td>
      ))}
    </tr>
  );
}

function Together({ columns }: { columns: Column[] }) {
  const { curves } = useText();
  const runs = useMemo(
    () => columns.flatMap(({ name, curves: read }) => read?.runs.map((run) => ({ name: read.runs.length > 1 ? `${name} · ${run.name}` : name, scalars: run.scalars })) ?? [{ name, scalars: [] }]),
    [columns],
  );
  return runs.some((run) => run.scalars.length > 0) ? <CurvePanel runs={runs} sync="compare" /> : <Empty title={curves.none} hint={curves.noneHint} />;
}

function download(name: string, contents: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([contents], { type: 'text/csv' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

