/** Outcome and cause: what failed or lacks, the last lines, and what to do. The first thing on the page. */
import { ArrowRightOutlined, BulbOutlined } from '@ant-design/icons';
import { useEffect, useRef } from 'react';
import { useText, type Words } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';
import { Ago, CopyButton, StatusIcon } from '../../parts/index.ts';
import { resourceName } from '../jobs/shortages.ts';
import { causeUrl } from './logs.ts';
import type { Advice, Cause, JobView } from './view.ts';

const STAGE = 'paceline-';

/** Title and advice of a reason; both empty if nobody knows it. */
export function reasonWords({ code, subject }: Advice, reasons: Words['reasons']): { title: string; advice: string } {
  const entry = (reasons as Record<string, readonly [string, string]>)[code];
  if (entry === undefined) return { title: '', advice: '' };
  return { title: entry[0], advice: entry[1].replace('{subject}', subject) };
}

export function exitText(cause: Cause, words: Words['job']['cause']): string {
  return cause.exitCode === null || cause.exitCode === undefined ? words.noExitCode : words.exitCode(cause.exitCode, cause.signal ?? '');
}

function headline(cause: Cause, words: Words['job']['cause'], title: string): string {
  if (cause.kind === 'Rejected' || cause.kind === 'Invalid') return words.rejected;
  if (cause.kind === 'Waiting') return (cause.shortages ?? []).length > 0 ? words.waiting : title || words.waitingPlain;
  if (!cause.replica) return title || cause.message;
  const code = exitText(cause, words);
  if (cause.container?.startsWith(STAGE)) return words.stage(cause.replica, cause.container.slice(STAGE.length), code);
  return cause.container ? words.exit(cause.replica, code, cause.container) : words.exitPlain(cause.replica, code);
}

export function CauseBox({ view }: { view: JobView }) {
  const t = useText();
  const { cause } = view;
  if (cause === null) return null;
  const words = t.job.cause;
  const isFailure = cause.kind === 'Failed' || cause.kind === 'Restarted';
  const tone = cause.kind === 'Waiting' ? 'pending' : cause.kind === 'Restarted' ? 'pending' : 'failed';
  const { title, advice } = reasonWords(cause.advice, t.reasons);
  return (
    <section className={`pl-cause pl-cause-${tone}`} data-cause={cause.kind} data-advice={cause.advice.code} aria-label={title}>
      <header>
        <StatusIcon tone={tone} />
        <div>
          <h2>{headline(cause, words, title)}</h2>
          <p>
            {cause.kind === 'Restarted' && <span>{words.lastFailure}</span>}
            {isFailure && title && <span>{title}</span>}
            {cause.time && <Ago time={cause.time} />}
            {view.queue && <QueueLine view={view} queue={view.queue} />}
            {cause.startAfter && (
              <span>
                {words.nextAttempt} <Ago time={cause.startAfter} />
              </span>
            )}
          </p>
        </div>
        {isFailure && cause.pod && (
          <Link className="pl-cause-log" to={causeUrl(view)}>
            {words.wholeLog} <ArrowRightOutlined aria-hidden />
          </Link>
        )}
      </header>
      {(cause.shortages ?? []).length > 0 && <Shortages cause={cause} />}
      {isFailure && <LastLines lines={cause.lastLines ?? []} detail={cause.message.includes(cause.detail ?? '') ? '' : (cause.detail ?? '')} label={words.lastLines} isFolded={cause.kind === 'Restarted'} />}
      <div className="pl-cause-advice">
        <BulbOutlined aria-hidden />
        <p>
          <strong>{words.whatToDo}</strong>
          {cause.neverRuns ? words.neverRuns : advice || cause.message}{' '}
          {isFailure && view.restarts.limit !== null && view.restarts.left !== null && (view.restarts.left === 0 || cause.kind === 'Restarted') && <span className="pl-soft">{words.restartsLeft(view.restarts.left, view.restarts.limit)}</span>}
        </p>
      </div>
      {cause.message !== '' && <p className="pl-cause-message" translate="no">{cause.message}</p>}
    </section>
  );
}

/** The place in the queue, and the job before it. */
function QueueLine({ view, queue }: { view: JobView; queue: NonNullable<JobView['queue']> }) {
  const { job, jobs } = useText();
  const { position, length, ahead } = queue;
  const name = ahead === null ? '' : ahead.namespace === view.namespace ? ahead.name : `${ahead.namespace}/${ahead.name}`;
  return (
    <span data-queue={position}>
      {jobs.place(position, length)}
      {name !== '' && <span className="pl-soft"> · {job.cause.after(name)}</span>}
    </span>
  );
}

interface LinesProps {
  lines: string[];
  detail: string;
  label: string;
  /** What was before a restart is of less interest. */
  isFolded: boolean;
}

function LastLines({ lines, detail, label, isFolded }: LinesProps) {
  const text = [...lines, ...(detail === '' ? [] : [detail])].join('\n');
  const box = useRef<HTMLPreElement>(null);
  // The end tells most. Nothing is returned: newer browsers' scrollTo gives a promise, which is no clean-up.
  useEffect(() => {
    box.current?.scrollTo(0, box.current.scrollHeight);
  }, [text]);
  if (text === '') return null;
  const shown = (
    <>
      <pre ref={box} tabIndex={0} aria-label={label}>
        {lines.map((line, index) => (
          <span key={index} className={isError(line) ? 'pl-line-error' : undefined}>
            {line}
            {'\n'}
          </span>
        ))}
        {detail !== '' && <span className="pl-line-error">{detail}</span>}
      </pre>
      <CopyButton text={text} />
    </>
  );
  if (!isFolded) return <div className="pl-lines">{shown}</div>;
  return (
    <details className="pl-lines">
      <summary>{label}</summary>
      {shown}
    </details>
  );
}

/** A line that names an error, as Python and most programs write it. */
export function isError(line: string): boolean {
  return /^\s*(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b|(?:\[?(?:ERROR|FATAL|CRITICAL)\b)|error:|fatal:)/.test(line);
}

function Shortages({ cause }: { cause: Cause }) {
  const { job, jobs } = useText();
  return (
    <ul className="pl-shortages">
      {(cause.shortages ?? []).map(({ resource, asked, free, total }) => (
        <li key={resource}>
          <strong>{asked === '' ? job.cause.lacks(resourceName(resource, jobs.resources)) : job.cause.needs(asked, resourceName(resource, jobs.resources))}</strong>
          {free !== '' && <span className="pl-soft">{job.cause.free(free, total)}</span>}
        </li>
      ))}
    </ul>
  );
}
