/** Charts of metrics with what people change about them: smoothing, axis, scale, which metrics and runs. */
import { Button, Checkbox, Input, Segmented } from 'antd';
import { useMemo, useState } from 'react';
import { useText } from '../app/i18n.tsx';
import { useChoice } from '../app/preferences.ts';
import { Chart, Empty } from '../parts/index.ts';
import { plainNumber } from '../parts/chart/series.ts';
import { bestIndex, bestOf, finite, groupByTag, patternOf, seriesOf, type ChartGroup, type CurveOptions, type CurvePoint, type Scalar } from './data.ts';

const FIRST_CHARTS = 12;

interface Props {
  runs: readonly { name: string; scalars: readonly Scalar[] }[];
  /** Charts with the same key move their cursors together. */
  sync: string;
}

export function CurvePanel({ runs, sync }: Props) {
  const { curves } = useText();
  const [options, setOptions] = useChoice<CurveOptions>('curves.options', { axis: 'step', smoothing: 0, isLog: false });
  const [view, setView] = useChoice<'charts' | 'table'>('curves.view', 'charts');
  const [text, setText] = useState('');
  const [runText, setRunText] = useState('');
  const [shown, setShown] = useState(FIRST_CHARTS);
  const pattern = patternOf(runText);
  const groups = useMemo(() => {
    const chosen = runs.map((run) => (pattern === null || pattern.test(run.name) ? run : { ...run, scalars: [] }));
    return groupByTag(chosen).filter((group) => group.tag.toLowerCase().includes(text.toLowerCase()));
  }, [runs, runText, text]);
  const change = (patch: Partial<CurveOptions>) => setOptions({ ...options, ...patch });
  return (
    <div className="pl-curves">
      <div className="pl-curves-bar">
        <Input.Search allowClear className="pl-curves-find" placeholder={curves.find} aria-label={curves.find} value={text} onChange={(event) => setText(event.target.value)} />
        {runs.length > 1 && (
          <Input className="pl-curves-find" placeholder={curves.findRun} aria-label={curves.findRun} value={runText} status={pattern === null ? 'error' : ''} title={pattern === null ? curves.badPattern : undefined} onChange={(event) => setRunText(event.target.value)} />
        )}
        <Segmented aria-label={curves.axis} value={options.axis} onChange={(axis) => change({ axis })} options={(['step', 'elapsed', 'time'] as const).map((value) => ({ value, label: curves.axes[value] }))} />
        <label className="pl-curves-smoothing">
          <span>{curves.smoothing}</span>
          <input type="range" min={0} max={0.99} step={0.01} value={options.smoothing} onChange={(event) => change({ smoothing: Number(event.target.value) })} />
          <span className="pl-figures">{options.smoothing.toFixed(2)}</span>
        </label>
        <Checkbox checked={options.isLog} onChange={(event) => change({ isLog: event.target.checked })}>
          {curves.log}
        </Checkbox>
        <Segmented className="pl-push" aria-label={curves.view} value={view} onChange={setView} options={[{ value: 'charts', label: curves.charts }, { value: 'table', label: curves.table }]} />
      </div>
      {groups.length === 0 ? (
        <Empty title={curves.noMatch} />
      ) : view === 'table' ? (
        <MetricTable groups={groups} />
      ) : (
        <>
          <div className="pl-curves-grid">
            {groups.slice(0, shown).map((group) => (
              <MetricChart key={group.tag} group={group} options={options} sync={sync} />
            ))}
          </div>
          {groups.length > shown && (
            <Button onClick={() => setShown(shown + FIRST_CHARTS)}>{curves.more(groups.length - shown)}</Button>
          )}
        </>
      )}
    </div>
  );
}

function MetricChart({ group, options, sync }: { group: ChartGroup; options: CurveOptions; sync: string }) {
  const { curves } = useText();
  const series = useMemo(() => seriesOf(group.lines, options), [group, options]);
  const line = group.lines[0];
  const isAlone = group.lines.length === 1 && line !== undefined;
  const best = isAlone ? bestOf(line.scalar) : undefined;
  return (
    <section className="pl-curve" data-metric={group.tag}>
      <header>
        <h3>{group.tag}</h3>
        {isAlone && (
          <span className="pl-faint pl-figures">
            {curves.last} {pointText(line.scalar.last)}
            {best !== undefined && ` · ${curves.best} ${pointText(best)} ${curves.atStep(plainNumber(best.step))}`}
          </span>
        )}
      </header>
      <Chart label={group.tag} series={series} axis={options.axis} isLog={options.isLog} sync={sync} height={200} />
    </section>
  );
}

function pointText(point: CurvePoint): string {
  const value = finite(point.value);
  return value === null ? String(point.value) : plainNumber(value);
}

function MetricTable({ groups }: { groups: ChartGroup[] }) {
  const { curves, compare } = useText();
  return (
    <div className="pl-curves-table">
      <table>
        <thead>
          <tr>
            {[curves.metric, curves.run, curves.values, curves.last, curves.best, curves.lowest, curves.highest].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {groups.flatMap((group) => {
            const best = bestIndex(group.tag, group.lines.map(({ scalar }) => finite(bestOf(scalar)?.value ?? NaN)));
            return group.lines.map(({ name, scalar }, index) => (
              <tr key={`${group.tag}\n${name}`}>
                <th scope="row">{group.tag}</th>
                <td>{name}</td>
                <td className="pl-figures">{scalar.count}</td>
                <td className="pl-figures">{pointText(scalar.last)}</td>
                {[bestOf(scalar), scalar.min, scalar.max].map((point, column) => (
                  <td key={column} className="pl-figures" title={point && curves.atStep(plainNumber(point.step))}>
                    {point ? pointText(point) : '–'}
                    {column === 0 && best === index && group.lines.length > 1 && <span className="pl-best"> ★ {compare.best}</span>}
                  </td>
                ))}
              </tr>
            ));
          })}
        </tbody>
      </table>
    </div>
  );
}
