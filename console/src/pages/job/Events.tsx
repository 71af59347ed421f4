import { SearchOutlined, WarningOutlined } from '@ant-design/icons';
import { Input, Segmented } from 'antd';
import { useMemo, useState } from 'react';
import { useText } from '../../app/i18n.tsx';
import { Ago, Empty, Section } from '../../parts/index.ts';
import { clockText } from '../../parts/time.ts';
import { filterEvents, type EventFilter } from './events.ts';
import type { JobEvent, JobView } from './view.ts';

export function Events({ view }: { view: JobView }) {
  const { job, reasons } = useText();
  const words = job.events;
  const [text, setText] = useState('');
  const [only, setOnly] = useState<EventFilter>('all');
  const events = useMemo(() => filterEvents(view.events, only, text, view.kind).reverse(), [view.events, view.kind, only, text]);
  if (view.events.length === 0) return <Empty title={words.none} />;
  return (
    <div className="pl-stack">
      <div className="pl-row">
        <Segmented<EventFilter>
          value={only}
          onChange={setOnly}
          options={[
            { value: 'all', label: words.all },
            { value: 'warnings', label: words.warnings },
            { value: 'job', label: words.ofJob },
          ]}
        />
        <Input className="pl-search" allowClear prefix={<SearchOutlined aria-hidden />} aria-label={words.search} placeholder={words.search} value={text} onChange={(event) => setText(event.target.value)} />
        {view.eventCount > view.events.length && <span className="pl-faint">{words.newest(view.events.length, view.eventCount)}</span>}
      </div>
      <Section isFlush>
        {events.length === 0 ? (
          <Empty title={words.noMatch} />
        ) : (
          <ol className="pl-events">
            {events.map((event) => (
              <EventLine key={event.uid} event={event} title={(reasons as Record<string, readonly string[]>)[event.reason]?.[0] ?? ''} />
            ))}
          </ol>
        )}
      </Section>
    </div>
  );
}

function EventLine({ event, title }: { event: JobEvent; title: string }) {
  const { job, lang } = useText();
  const isWarning = event.type === 'Warning';
  return (
    <li className={isWarning ? 'pl-event pl-event-warning' : 'pl-event'} data-reason={event.reason}>
      <span className="pl-event-time">
        <span className="pl-figures">
          {event.time !== '' && clockText(Date.parse(event.time), lang)}
          {event.count > 1 && ` ${job.events.times(event.count)}`}
        </span>
        <span className="pl-faint">
          <Ago time={event.time} />
        </span>
      </span>
      <span className="pl-event-reason">
        <span>
          {isWarning && <WarningOutlined aria-label={job.events.warnings} />}
          <code>{event.reason}</code>
        </span>
        <span className="pl-faint">{title}</span>
      </span>
      <span className="pl-event-text">
        <span className="pl-wrap" translate="no">{event.message}</span>
        <span className="pl-faint">
          {event.object}
          {event.source && ` · ${event.source}`}
        </span>
      </span>
    </li>
  );
}
