/** One chart over time: lines, dashed marks, a cursor whose values stand in the legend. uPlot comes with the first one. */
import { useEffect, useRef, useState } from 'react';
import type uPlot from 'uplot';
import { useText } from '../app/i18n.tsx';
import { fetchPart } from '../app/retry.ts';
import { useThemeName } from '../app/theme.tsx';
import { palettes, replicaColours, type ThemeName } from '../app/tokens.ts';
import type { ChartData } from './series.ts';

interface Props {
  data: ChartData;
  /** What the chart shows, in words. */
  title: string;
  say: (value: number) => string;
  from: number;
  to: number;
  height?: number;
  /** Called with the index of the time below the cursor, `null` when it leaves. */
  onCursor?: (index: number | null) => void;
}

const SYNC = 'pl-usage';
// 1, 2, 4 … 512 of each unit, so that the marks of an axis are round in bytes.
const BYTES = Array.from({ length: 50 }, (_, power) => 2 ** power);

export function LineChart({ data, title, say, from, to, height = 150, onCursor }: Props) {
  const { lang } = useText();
  const theme = useThemeName();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [library, setLibrary] = useState<typeof uPlot | null>(null);
  const notify = useRef(onCursor);
  notify.current = onCursor;
  useEffect(() => {
    let isCurrent = true;
    fetchPart(() => import('uplot')).then(
      (module) => isCurrent && setLibrary(() => module.default),
      (error: unknown) => console.error(error),
    );
    return () => {
      isCurrent = false;
    };
  }, []);
  const shape = JSON.stringify([data.lines.map((line) => [line.label, line.colour]), data.marks, lang, theme]);
  useEffect(() => {
    const place = box.current;
    if (library === null || place === null) return;
    const made = new library(options(data, { theme, lang, say, height, width: place.clientWidth, onCursor: (index) => notify.current?.(index) }), columns(data), place);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: place.clientWidth, height }));
    observer.observe(place);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
    // The data of a chart that stays are set below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [library, shape, height]);
  useEffect(() => {
    const made = plot.current;
    if (made === null) return;
    made.batch(() => {
      made.setData(columns(data), false);
      made.setScale('x', { min: from, max: to });
      made.setScale('y', { min: 0, max: top(data) });
    });
  }, [data, from, to, library, shape]);
  return <div ref={box} className="pl-chart" role="img" aria-label={title} style={{ height }} data-points={data.times.length} />;
}

function columns(data: ChartData): uPlot.AlignedData {
  const marks = data.marks.map((mark) => data.times.map(() => mark.value));
  return [data.times, ...data.lines.map((line) => line.values), ...marks] as uPlot.AlignedData;
}

function isBytes(data: ChartData): boolean {
  return data.field !== 'cpu' && data.field !== 'gpu';
}

/** The largest value that is drawn; a limit far above all values would press them to the floor. */
export function top(data: ChartData): number {
  const most = Math.max(...data.lines.map((line) => line.most), 0);
  const marks = data.marks.map((mark) => mark.value).filter((value) => value <= Math.max(most * 4, 0));
  // A chart of nothing still has an axis.
  return Math.max(most, ...marks, isBytes(data) ? 1024 : 0.1) * 1.08;
}

interface Look {
  theme: ThemeName;
  lang: string;
  say: (value: number) => string;
  height: number;
  width: number;
  onCursor: (index: number | null) => void;
}

function options(data: ChartData, look: Look): uPlot.Options {
  const colour = palettes[look.theme];
  const hues = replicaColours[look.theme];
  // By 24 hours, as the times of logs.
  const time = new Intl.DateTimeFormat(look.lang, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  const second = new Intl.DateTimeFormat(look.lang, { timeStyle: 'medium', hourCycle: 'h23' });
  const day = new Intl.DateTimeFormat(look.lang, { month: 'numeric', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  const font = '11px Inter Variable, sans-serif';
  const axis = { stroke: colour.inkFaint, font, grid: { stroke: colour.line, width: 1 }, ticks: { show: false } };
  return {
    width: look.width,
    height: look.height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: SYNC }, y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: { x: { time: true, auto: false }, y: { auto: false } },
    axes: [
      { ...axis, size: 26, space: 90, values: (_plot, splits) => splits.map((value) => format(value, splits, [second, time, day])) },
      { ...axis, size: 64, space: 34, ...(isBytes(data) ? { incrs: BYTES } : {}), values: (_plot, splits) => splits.map((value) => look.say(value)) },
    ],
    series: [
      {},
      ...data.lines.map((line) => ({
        label: line.label,
        stroke: hues[line.colour % hues.length] ?? colour.brand,
        width: 1.75,
        points: { show: data.times.length < 3 },
        ...(line.colour >= hues.length ? { dash: [8, 3] } : {}),
      })),
      ...data.marks.map((mark) => ({
        label: mark.kind,
        stroke: mark.kind === 'limit' ? colour.tones.failed.solid : colour.inkFaint,
        width: 1,
        dash: mark.kind === 'limit' ? [6, 4] : [2, 4],
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [(made) => look.onCursor(made.cursor.idx ?? null)] },
  };
}

function format(value: number, splits: number[], [second, time, day]: [Intl.DateTimeFormat, Intl.DateTimeFormat, Intl.DateTimeFormat]): string {
  const span = (splits.at(-1) ?? 0) - (splits[0] ?? 0);
  return (span > 86_400 ? day : span < 300 ? second : time).format(value * 1000);
}
