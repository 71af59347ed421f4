/** CPU, memory and GPUs of the machine over the last hours, for the overview. */
import { lazy, Suspense, useMemo } from 'react';
import { useText } from '../app/i18n.tsx';
import { chartsOf, type Field } from './series.ts';
import { amountText } from './UsageCharts.tsx';
import { useUsage } from './useUsage.ts';

const LineChart = lazy(() => import('./LineChart.tsx').then((module) => ({ default: module.LineChart })));
const SHOWN: readonly Field[] = ['cpu', 'memory', 'gpu'];

export function MachineHistory() {
  const { usage: words } = useText();
  const { answer } = useUsage('node=true&seconds=21600&points=180', true);
  const charts = useMemo(
    () => chartsOf(answer?.items ?? [], (item) => ({ label: item.node ?? '', colour: 0 }), answer?.step).filter((chart) => SHOWN.includes(chart.field)),
    [answer],
  );
  if (answer === undefined || charts.length === 0) return null;
  return (
    <div className="pl-machine-history" data-source={answer.source}>
      {charts.map((data) => {
        const last = data.lines.map((line) => line.values.findLast((value) => value !== null) ?? 0).reduce((sum, value) => sum + value, 0);
        return (
          <div key={data.field} data-field={data.field}>
            <div className="pl-meter-text">
              <strong>{words.fields[data.field]}</strong>
              <span className="pl-figures">{amountText(data.field, last)}</span>
            </div>
            <Suspense fallback={<div className="pl-chart" style={{ height: 84 }} />}>
              <LineChart data={{ ...data, marks: [] }} title={words.chartOf(words.fields[data.field])} say={(value) => amountText(data.field, value)} from={answer.from} to={answer.to} height={84} />
            </Suspense>
          </div>
        );
      })}
      <p className="pl-faint">{words.lastHours(Math.round((answer.to - answer.from) / 3600))} {words.sources[answer.source]}</p>
    </div>
  );
}
