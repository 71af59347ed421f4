/** The charts of what replicas or nodes used, and the same as figures in a table. */
import { useState } from 'react';
import { useText, type Words } from '../app/i18n.tsx';
import { bytesText, coresText, ReplicaDot, Section } from '../parts/index.ts';
import { LineChart } from './LineChart.tsx';
import type { ChartData, Field } from './series.ts';

const RATES: readonly Field[] = ['diskRead', 'diskWrite', 'networkIn', 'networkOut'];

/** An amount of a field, with its unit. */
export function amountText(field: Field, value: number): string {
  if (field === 'cpu' || field === 'gpu') return coresText(value);
  return RATES.includes(field) ? `${bytesText(value)}/s` : bytesText(value);
}

export function UsageCharts({ charts, from, to }: { charts: ChartData[]; from: number; to: number }) {
  return (
    <div className="pl-usage-grid">
      {charts.map((data) => (
        <UsageChart key={data.field} data={data} from={from} to={to} />
      ))}
    </div>
  );
}

function unitOf(field: Field, { units, perSecond }: Words['usage']): string {
  return field === 'gpuMemory' ? units.memory : field in units ? units[field as keyof typeof units] : perSecond;
}

function UsageChart({ data, from, to }: { data: ChartData; from: number; to: number }) {
  const { usage: words, lang } = useText();
  const [index, setIndex] = useState<number | null>(null);
  const say = (value: number) => amountText(data.field, value);
  const time = index === null ? undefined : data.times[index];
  const isOne = data.lines.length === 1;
  return (
    <Section
      title={words.fields[data.field]}
      extra={<span className="pl-faint pl-figures">{time === undefined ? unitOf(data.field, words) : new Intl.DateTimeFormat(lang, { timeStyle: 'medium' }).format(time * 1000)}</span>}
    >
      <div className="pl-usage-chart" data-field={data.field}>
        <LineChart data={data} title={words.chartOf(words.fields[data.field])} say={say} from={from} to={to} onCursor={setIndex} />
        <ul className="pl-usage-legend">
          {data.lines.slice(0, 12).map((line) => {
            const value = index === null ? line.values.findLast((entry) => entry !== null) : line.values[index];
            return (
              <li key={line.label}>
                <ReplicaDot index={line.colour} />
                {!isOne && <span translate="no">{line.label}</span>}
                <strong className="pl-figures">{value === null || value === undefined ? '–' : say(value)}</strong>
                {index === null && <span className="pl-faint pl-figures">{words.most(say(line.most))}</span>}
              </li>
            );
          })}
          {data.lines.length > 12 && <li className="pl-faint">{words.more(data.lines.length - 12)}</li>}
          {data.marks.map((mark) => (
            <li key={`${mark.kind}${mark.value}`} className="pl-faint" data-mark={mark.kind}>
              <span className={`pl-usage-dash pl-usage-${mark.kind}`} aria-hidden />
              {words.marks[mark.kind](say(mark.value))}
              {!isOne && mark.labels.length < data.lines.length && <span translate="no">({mark.labels.slice(0, 3).join(', ')}{mark.labels.length > 3 ? ' …' : ''})</span>}
            </li>
          ))}
        </ul>
      </div>
    </Section>
  );
}

/** The figures of all charts, for those who do not see them. */
export function UsageTable({ charts, owner }: { charts: ChartData[]; owner: string }) {
  const { usage: words } = useText();
  const labels = [...new Set(charts.flatMap((chart) => chart.lines.map((line) => line.label)))];
  return (
    <Section title={words.figures} hint={words.figuresHint} isFlush>
      <div className="pl-usage-scroll" tabIndex={0} role="region" aria-label={words.figures}>
        <table className="pl-usage-table">
          <thead>
            <tr>
              <th scope="col">{owner}</th>
              {charts.map((chart) => (
                <th scope="col" key={chart.field}>
                  {words.fields[chart.field]}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {labels.map((label) => (
              <tr key={label}>
                <th scope="row" translate="no">{label}</th>
                {charts.map((chart) => {
                  const line = chart.lines.find((entry) => entry.label === label);
                  return (
                    <td key={chart.field} className="pl-figures pl-nowrap">
                      {line === undefined ? '–' : `${amountText(chart.field, line.mean)} / ${amountText(chart.field, line.most)}`}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
