/** Progress and metrics from the last lines of a log. The pattern is that of presentation/progress.py. */
import type { TrainingProgress } from './progress.ts';

const UNITS = ['epoch', 'round', 'iteration', 'iter', 'step', 'batch'];
const FRAGMENT = /\b(epoch|round|iteration|iter|step|batch)s?\b[\s:=#[(]{0,4}(\d{1,9})\s{0,3}(?:\/|of)\s{0,3}(\d{1,9})/gi;
const METRIC = /\b(val_loss|loss|val_acc(?:uracy)?|acc(?:uracy)?|auc|rmse|perplexity|ppl)\b\s{0,2}[:=]?\s{0,2}([-+]?\d{1,12}(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?)/gi;

/** The last progress in a text; coarser units take precedence. */
export function progressIn(text: string): TrainingProgress | null {
  let progress: TrainingProgress | null = null;
  for (const [, word = '', has = '', all = ''] of text.matchAll(FRAGMENT)) {
    const [unit, done, total] = [word.toLowerCase(), Number(has), Number(all)];
    if (total === 0 || done > total) continue;
    if (progress === null || UNITS.indexOf(unit) <= UNITS.indexOf(progress.unit)) progress = { unit, done, total };
  }
  return progress;
}

export interface Metric {
  name: string;
  values: number[];
}

/** The first metric that the text names most often, with its values in order. */
export function metricIn(text: string): Metric | null {
  const metrics = new Map<string, number[]>();
  for (const [, word = '', value = ''] of text.matchAll(METRIC)) {
    const name = word.toLowerCase();
    metrics.set(name, [...(metrics.get(name) ?? []), Number(value)]);
  }
  let best: Metric | null = null;
  for (const [name, values] of metrics) if (best === null || values.length > best.values.length) best = { name, values };
  return best;
}

/** Points of a line through values, in a box of the given size; flat where all are equal. */
export function sparkline(values: readonly number[], width: number, height: number): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  const y = (value: number) => (high === low ? height / 2 : height - ((value - low) / (high - low)) * height);
  return values.map((value, index) => `${(index * step).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
}
