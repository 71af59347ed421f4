/** The canvas of a chart: uPlot, with a legend and a tooltip of our own, both of text nodes only. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import { useThemeName } from '../../app/theme.tsx';
import { palettes, replicaColours, type ThemeName } from '../../app/tokens.ts';
import { align, columnsOf, nearest, plainNumber, xText, type ChartProps, type Series } from './series.ts';

const HEIGHT = 240;
const DASHES = [[], [6, 4], [2, 3]];

interface Look {
  stroke: string;
  dash: number[];
}

function lookOf(line: Series, index: number, theme: ThemeName): Look {
  const hues = replicaColours[theme];
  const place = line.colour ?? index;
  return { stroke: hues[place % hues.length] as string, dash: DASHES[Math.floor(place / hues.length) % DASHES.length] as number[] };
}

export default function Plot(props: ChartProps) {
  const theme = useThemeName();
  const box = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState<{ x: number; left: number } | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const shown = props.series.filter((line) => !hidden.has(line.name));
  usePlot(box, { ...props, series: shown }, theme, setCursor);
  const legend = props.series.filter((line) => !line.isFaint);
  const toggle = (name: string) => setHidden((names) => (names.has(name) ? new Set([...names].filter((other) => other !== name)) : new Set([...names, name])));
  return (
    <figure className="pl-chart" aria-label={props.label}>
      <div className="pl-chart-canvas" ref={box} style={{ height: props.height ?? HEIGHT }} />
      {cursor !== null && <Tooltip {...props} series={shown} theme={theme} cursor={cursor} />}
      {legend.length > 1 && (
        <ul className="pl-chart-legend">
          {legend.map((line) => (
            <li key={line.name}>
              <button type="button" aria-pressed={!hidden.has(line.name)} onClick={() => toggle(line.name)}>
                <Swatch look={lookOf(line, props.series.indexOf(line), theme)} />
                {line.name}
              </button>
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}

function Swatch({ look }: { look: Look }) {
  return (
    <svg width="14" height="8" aria-hidden>
      <line x1="0" x2="14" y1="4" y2="4" stroke={look.stroke} strokeWidth="2.5" strokeDasharray={look.dash.join(' ')} />
    </svg>
  );
}

const TOOLTIP_LINES = 12;

function Tooltip({ series, axis, limits = [], format = plainNumber, cursor, theme }: ChartProps & { cursor: { x: number; left: number }; theme: ThemeName }) {
  const values = series.flatMap((line, index) => {
    const place = line.isFaint ? null : nearest(line.x, cursor.x);
    const value = place === null ? null : line.y[place];
    return value === null || value === undefined ? [] : [{ line, value, look: lookOf(line, index, theme) }];
  });
  const isRight = cursor.left > 0.5;
  return (
    <div className={isRight ? 'pl-chart-tip pl-chart-tip-left' : 'pl-chart-tip'} aria-hidden>
      <div className="pl-faint">{xText(axis, cursor.x)}</div>
      {values.slice(0, TOOLTIP_LINES).map(({ line, value, look }) => (
        <div key={line.name} className="pl-chart-tip-line">
          <Swatch look={look} />
          <span>{line.name}</span>
          <b className="pl-figures">{format(value)}</b>
        </div>
      ))}
      {values.length > TOOLTIP_LINES && <div className="pl-faint">+ {values.length - TOOLTIP_LINES}</div>}
      {limits.map((limit) => (
        <div key={limit.name} className="pl-chart-tip-line pl-faint">
          <span>{limit.name}</span>
          <b className="pl-figures">{format(limit.value)}</b>
        </div>
      ))}
    </div>
  );
}

type SetCursor = (cursor: { x: number; left: number } | null) => void;

/** Keep one uPlot in the box: made anew when its form changes, given new data otherwise, so that a zoom stays. */
function usePlot(box: React.RefObject<HTMLDivElement | null>, props: ChartProps, theme: ThemeName, setCursor: SetCursor): void {
  const plot = useRef<uPlot | null>(null);
  const { series, axis, isLog = false, limits, marks, isFromZero, sync, format, height = HEIGHT } = props;
  const form = JSON.stringify([series.map((line) => [line.name, line.colour, line.isFaint, columnsOf(line).length]), axis, isLog, limits, isFromZero, sync, height, theme]);
  const data = useMemo(() => align(series, isLog) as uPlot.AlignedData, [series, isLog]);
  const latest = useRef({ marks, format });
  latest.current = { marks, format };
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const size = () => ({ width: Math.max(160, element.clientWidth), height });
    const made = new uPlot({ ...optionsOf(props, theme, latest, setCursor), ...size() }, data, element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
      setCursor(null);
    };
    // The form says all that the options depend on.
  }, [form]);
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) isFirst.current = false;
    else if (plot.current !== null && plot.current.data !== data) plot.current.setData(data, !isZoomed(plot.current));
  }, [data]);
}

function isZoomed(plot: uPlot): boolean {
  const xs = plot.data[0];
  const { min, max } = plot.scales.x as uPlot.Scale;
  return xs.length > 1 && min != null && max != null && (min > (xs[0] as number) || max < (xs[xs.length - 1] as number));
}

type Latest = React.RefObject<Pick<ChartProps, 'marks' | 'format'>>;

function optionsOf(props: ChartProps, theme: ThemeName, latest: Latest, setCursor: SetCursor): Omit<uPlot.Options, 'width' | 'height'> {
  const { axis, isLog = false, limits = [], isFromZero = false, sync } = props;
  const colours = palettes[theme];
  const line = { stroke: colours.inkFaint, grid: { stroke: colours.line, width: 1 }, ticks: { show: false }, font: "11px 'Inter Variable', system-ui, sans-serif" };
  return {
    ...seriesOf(props.series, theme),
    legend: { show: false },
    padding: [10, 12, 0, 0],
    scales: {
      x: { time: false },
      y: isLog ? { distr: 3, log: 10 } : { range: (_plot, low, high) => rangeOf(low, high, limits.map(({ value }) => value), isFromZero) },
    },
    axes: [
      { ...line, size: 30, incrs: axis === 'step' ? STEPS : SECONDS, values: (_plot, splits, _axis, _space, distance) => splits.map((value) => xText(axis, value, distance)) },
      { ...line, size: 62, values: (_plot, splits) => splits.map((value) => (value === null ? '' : (latest.current.format ?? plainNumber)(value))) },
    ],
    cursor: {
      points: { show: false },
      drag: { x: true, y: false },
      ...(sync === undefined ? {} : { sync: { key: sync } }),
    },
    hooks: {
      setCursor: [(plot) => setCursor(cursorOf(plot))],
      draw: [(plot) => drawLines(plot, limits, latest.current.marks ?? [], theme)],
    },
  };
}

function seriesOf(series: readonly Series[], theme: ThemeName): Pick<uPlot.Options, 'series' | 'bands'> {
  const bands: uPlot.Band[] = [];
  const columns: uPlot.Series[] = [{}];
  series.forEach((line, index) => {
    const { stroke, dash } = lookOf(line, index, theme);
    columns.push({ label: line.name, stroke, dash, width: line.isFaint ? 1 : 2, alpha: line.isFaint ? 0.3 : 1, spanGaps: false, points: { show: line.x.length === 1 } });
    if (columnsOf(line).length === 1) return;
    const place = columns.length;
    columns.push({ stroke: undefined, width: 0, points: { show: false } }, { stroke: undefined, width: 0, points: { show: false } });
    bands.push({ series: [place, place + 1], fill: `${stroke}26` });
  });
  return { series: columns, bands };
}

const STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const SECONDS = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000];

/** A vertical range with some air, that shows the limits where they are not far away. */
export function rangeOf(low: number | null, high: number | null, limits: readonly number[], isFromZero: boolean): [number, number] {
  if (low === null || high === null) return [0, 1];
  const near = limits.filter((limit) => limit <= Math.max(high * 4, 1e-9));
  const top = Math.max(high, ...near);
  const bottom = isFromZero ? Math.min(0, low) : Math.min(low, ...near);
  const air = (top - bottom || Math.abs(top) || 1) * 0.05;
  return [isFromZero && bottom === 0 ? 0 : bottom - air, top + air];
}

function cursorOf(plot: uPlot): { x: number; left: number } | null {
  const left = plot.cursor.left ?? -1;
  if (left < 0) return null;
  return { x: plot.posToVal(left, 'x'), left: left / Math.max(1, plot.over.clientWidth) };
}

function drawLines(plot: uPlot, limits: readonly { value: number }[], marks: readonly { x: number }[], theme: ThemeName): void {
  const { ctx, bbox } = plot;
  const draw = (from: [number, number], to: [number, number], colour: string) => {
    ctx.strokeStyle = colour;
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.lineTo(...to);
    ctx.stroke();
  };
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const { value } of limits) {
    const y = plot.valToPos(value, 'y', true);
    if (y >= bbox.top && y <= bbox.top + bbox.height) draw([bbox.left, y], [bbox.left + bbox.width, y], palettes[theme].tones.failed.solid);
  }
  for (const { x } of marks) {
    const left = plot.valToPos(x, 'x', true);
    if (left >= bbox.left && left <= bbox.left + bbox.width) draw([left, bbox.top], [left, bbox.top + bbox.height], palettes[theme].lineStrong);
  }
  ctx.restore();
}
