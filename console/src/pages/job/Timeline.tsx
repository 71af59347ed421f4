import { Button, Tooltip } from 'antd';
import { useState } from 'react';
import { useText } from '../../app/i18n.tsx';
import { navigate } from '../../app/router.tsx';
import { ReplicaDot, Section, useNow } from '../../parts/index.ts';
import { clockText, durationText } from '../../parts/time.ts';
import { useIsNarrow } from '../jobs/layout.ts';
import { logUrl } from './logs.ts';
import { boxOf, extentOf, ticksOf, type Extent } from './scale.ts';
import type { JobView, Span, TimelineRow } from './view.ts';

/** More replicas than this are behind a button. */
const FEW = 12;

export function Timeline({ view }: { view: JobView }) {
  const t = useText();
  const isNarrow = useIsNarrow();
  const [isWhole, setWhole] = useState(false);
  const isMoving = view.timeline.some((row) => row.spans.some((span) => span.end === null));
  const begin = view.facts.started ?? view.facts.created;
  const now = useNow(begin === null ? undefined : Date.parse(begin), isMoving);
  const extent = extentOf(view.timeline, now);
  const rows = isWhole ? view.timeline : view.timeline.slice(0, FEW);
  const more = view.timeline.length - FEW;
  return (
    <Section title={t.job.timeline.title} hint={t.job.timeline.hint}>
      {rows.length === 0 ? (
        <p className="pl-faint">{t.job.timeline.empty}</p>
      ) : (
        <div className="pl-timeline">
          {rows.map((row, index) => (
            <TimelineLine key={row.replica} row={row} index={index} extent={extent} now={now} view={view} />
          ))}
          <Axis extent={extent} most={isNarrow ? 3 : 8} />
        </div>
      )}
      {more > 0 && (
        <Button type="link" size="small" onClick={() => setWhole(!isWhole)}>
          {isWhole ? t.job.timeline.less : t.job.timeline.more(more)}
        </Button>
      )}
    </Section>
  );
}

interface LineProps {
  row: TimelineRow;
  index: number;
  extent: Extent;
  now: number;
  view: JobView;
}

function TimelineLine({ row, index, extent, now, view }: LineProps) {
  const t = useText();
  return (
    <div className="pl-timeline-row" data-replica={row.replica}>
      <span className="pl-timeline-name">
        <ReplicaDot index={index} />
        <span>{row.replica}</span>
        {row.isLeader && (
          <Tooltip title={t.job.timeline.leader}>
            <span className="pl-leader" aria-label={t.job.timeline.leader}>
              ★
            </span>
          </Tooltip>
        )}
      </span>
      <span className="pl-timeline-track">
        {row.spans.map((span) => (
          <Bar key={`${span.pod} ${span.start} ${span.state}`} span={span} replica={row.replica} extent={extent} now={now} view={view} />
        ))}
      </span>
    </div>
  );
}

function Bar({ span, replica, extent, now, view }: { span: Span; replica: string; extent: Extent; now: number; view: JobView }) {
  const { common, job, lang } = useText();
  const isNarrow = useIsNarrow();
  const words = job.timeline;
  const { left, width } = boxOf(span, extent, now);
  const states: Record<string, string> = words.states;
  const start = Date.parse(span.start);
  const end = span.end === null ? now : Date.parse(span.end);
  const facts = [
    words.attempt(span.attempt),
    durationText(end - start, common),
    ...(span.exitCode === null ? [] : [words.exit(span.exitCode)]),
    ...(span.reason === '' || span.reason === 'Error' ? [] : [span.reason]),
    ...(span.node === '' ? [] : [words.node(span.node)]),
  ];
  const label = `${states[span.state] ?? span.state}: ${facts.join(', ')}`;
  const isWaiting = span.state === 'Waiting';
  return (
    <Tooltip
      title={
        <>
          <strong>{states[span.state] ?? span.state}</strong>
          {facts.map((fact) => (
            <div key={fact}>{fact}</div>
          ))}
          <div>
            {clockText(start, lang)} – {span.end === null ? '…' : clockText(end, lang)}
          </div>
        </>
      }
    >
      <button
        type="button"
        className={`pl-span pl-span-${span.state.toLowerCase()}`}
        style={{ left: `${left}%`, width: `${width}%` }}
        aria-label={label}
        disabled={isWaiting}
        onClick={() => navigate(logUrl(view, replica, span.attempt))}
      >
        {width > (isNarrow ? 26 : 9) && !isWaiting && <span>{span.exitCode ? words.exit(span.exitCode) : view.attempt > 0 ? `r${span.attempt}` : ''}</span>}
      </button>
    </Tooltip>
  );
}

function Axis({ extent, most }: { extent: Extent; most: number }) {
  const { common, lang } = useText();
  return (
    <div className="pl-timeline-row pl-timeline-axis" aria-hidden>
      <span className="pl-timeline-name">{clockText(extent.start, lang)}</span>
      <span className="pl-timeline-track">
        {ticksOf(extent, most).map(({ at, elapsed }) => (
          <span key={elapsed} className="pl-tick" style={{ left: `${at}%` }}>
            {at < 97 && durationText(elapsed, common)}
          </span>
        ))}
      </span>
    </div>
  );
}
