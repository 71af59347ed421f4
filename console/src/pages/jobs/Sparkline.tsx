import { useText } from '../../app/i18n.tsx';
import { sparkline, type Metric } from './metrics.ts';

const [WIDTH, HEIGHT] = [64, 18];

/** The course of a metric over the last lines of a log, and its last value. */
export function Sparkline({ metric }: { metric: Metric }) {
  const { lang } = useText();
  const last = metric.values.at(-1) ?? 0;
  const text = `${metric.name} ${new Intl.NumberFormat(lang, { maximumSignificantDigits: 4 }).format(last)}`;
  return (
    <span className="pl-spark" role="img" aria-label={text}>
      <span className="pl-figures pl-nowrap">{text}</span>
      {metric.values.length > 2 && (
        <svg width={WIDTH} height={HEIGHT} viewBox={`-1 -2 ${WIDTH + 2} ${HEIGHT + 4}`} aria-hidden>
          <polyline points={sparkline(metric.values, WIDTH, HEIGHT)} />
        </svg>
      )}
    </span>
  );
}
