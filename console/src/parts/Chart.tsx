/** A chart of lines over steps or time. The library that draws it is loaded with the first chart. */
import { lazy, Suspense } from 'react';
import { fetchPart } from '../app/retry.ts';
import type { ChartProps } from './chart/series.ts';

export type { ChartProps, Series } from './chart/series.ts';

const Plot = lazy(() => fetchPart(() => import('./chart/Plot.tsx')));

/**
 * Show series as lines: drag to zoom, double-click to see all again, click a name to hide its line.
 *
 *     <Chart label="loss" axis="step" series={[{ name: 'run-1', x: [1, 2], y: [0.9, 0.7] }]} />
 */
export function Chart(props: ChartProps) {
  return (
    <Suspense fallback={<div aria-busy style={{ height: props.height ?? 240 }} />}>
      <Plot {...props} />
    </Suspense>
  );
}
