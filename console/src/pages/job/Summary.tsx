import { useMemo, type ReactNode } from 'react';
import { useText } from '../../app/i18n.tsx';
import { Link, pathOf } from '../../app/router.tsx';
import { Ago, CopyButton, Duration, Facts, parseQuantity, Section } from '../../parts/index.ts';
import { durationText } from '../../parts/time.ts';
import { Bar, pairText } from '../jobs/cells.tsx';
import { resourceName } from '../jobs/shortages.ts';
import { metricIn, progressIn } from '../jobs/metrics.ts';
import { percent } from '../jobs/progress.ts';
import { Sparkline } from '../jobs/Sparkline.tsx';
import { useLogTail } from '../jobs/useLogTail.ts';
import { Timeline } from './Timeline.tsx';
import { ReplicaStatus } from './ReplicaStatus.tsx';
import type { Facts as FactsOf, JobView, Place } from './view.ts';

export function Summary({ view }: { view: JobView }) {
  return (
    <>
      <ProgressLine view={view} />
      <Timeline view={view} />
      <div className="pl-summary-grid">
        <FactList view={view} />
        <div className="pl-summary-side">
          <Roles view={view} />
          <Conditions view={view} />
        </div>
      </div>
    </>
  );
}

function ProgressLine({ view }: { view: JobView }) {
  const { job } = useText();
  const isRunning = view.phase === 'Running';
  const tail = useLogTail(view, isRunning);
  const progress = view.progress ?? progressIn(tail);
  const metric = useMemo(() => metricIn(tail), [tail]);
  if (progress === null) return null;
  const text = job.progress(progress.unit, progress.done, progress.total);
  return (
    <div className="pl-job-progress">
      <Bar value={percent(progress)} label={text} isMoving={isRunning} />
      {metric && <Sparkline metric={metric} />}
      <span className="pl-figures">{text}</span>
      <strong className="pl-figures">{percent(progress)} %</strong>
    </div>
  );
}

function FactList({ view }: { view: JobView }) {
  const t = useText();
  const words = t.job.facts;
  const { facts } = view;
  const rows: (readonly [string, ReactNode] | false)[] = [
    [words.created, <Times key="t" time={facts.created} />],
    facts.started !== null && [words.started, <Times key="t" time={facts.started} />],
    facts.ended !== null && [words.ended, <Times key="t" time={facts.ended} />],
    facts.started !== null && [words.duration, <Duration key="d" from={facts.started} to={facts.ended} />],
    facts.pausedSeconds > 0 && [words.paused, durationText(facts.pausedSeconds * 1000, t.common)],
    view.elastic !== null && [words.size, words.sizeOf(view.elastic.currentReplicas, view.elastic.expectedReplicas)],
    view.askedBy !== '' && [words.askedBy, view.askedBy],
    view.copyOf !== '' && [words.copyOf, <CopyOf key="c" view={view} />],
    facts.app !== '' && [words.application, <App key="a" view={view} />],
    facts.queue !== '' && [words.queue, facts.queue],
    facts.queue !== '' && [words.priority, String(facts.priority)],
    [words.image, <Mono key="i" lines={facts.images} />],
    facts.source.url !== '' && [words.repository, <code key="r">{facts.source.url}</code>],
    facts.source.commit !== '' && [words.commit, <Commit key="c" facts={facts} />],
    Object.keys(facts.hyperparameters).length > 0 && [words.hyperparameters, <Values key="h" values={facts.hyperparameters} />],
    Object.keys({ ...facts.requests, ...facts.limits }).length > 0 && [words.resources, <Resources key="r" facts={facts} />],
    facts.claims.length > 0 && [words.volumes, <Mono key="v" lines={facts.claims.map(({ claim, path }) => `${claim} → ${path}`)} />],
    facts.input !== null && [words.input, <Location key="i" place={facts.input} />],
    facts.output !== null && [words.output, <Location key="o" place={facts.output} />],
    view.tensorboard !== null && [words.tensorboard, <Board key="b" view={view} />],
    facts.activeDeadlineSeconds !== null && [words.deadline, durationText(facts.activeDeadlineSeconds * 1000, t.common)],
    Object.keys(facts.labels).length > 0 && [words.labels, <Values key="l" values={facts.labels} />],
    [words.uid, <CopyText key="u" text={view.uid} />],
  ];
  return (
    <Section title={words.title}>
      <Facts items={rows.filter((row) => row !== false)} />
    </Section>
  );
}

function Times({ time }: { time: string | null }) {
  const { lang } = useText();
  if (time === null) return <span className="pl-faint">–</span>;
  return (
    <span>
      {new Intl.DateTimeFormat(lang, { dateStyle: 'medium', timeStyle: 'medium' }).format(Date.parse(time))}{' '}
      <span className="pl-faint">
        (<Ago time={time} />)
      </span>
    </span>
  );
}

function CopyOf({ view }: { view: JobView }) {
  return <Link to={pathOf('jobs', view.namespace, view.kind, view.copyOf)}>{view.copyOf}</Link>;
}

function App({ view }: { view: JobView }) {
  const { job } = useText();
  return (
    <Link to={pathOf('apps', view.namespace, view.facts.app)}>
      {view.facts.app}
      {view.facts.revision !== '' && `, ${job.facts.revision(view.facts.revision)}`}
    </Link>
  );
}

function Board({ view }: { view: JobView }) {
  const board = view.tensorboard!;
  return (
    <span>
      <Link to={pathOf('tensorboards', view.namespace, board.name)}>{board.name}</Link> {board.note && <span className="pl-faint">{board.note}</span>}
    </span>
  );
}

function Commit({ facts }: { facts: FactsOf }) {
  return (
    <span className="pl-row">
      <code title={facts.source.commit}>{facts.source.commit.slice(0, 12)}</code>
      {facts.source.revision !== '' && <span className="pl-faint">{facts.source.revision}</span>}
      <CopyButton text={facts.source.commit} />
    </span>
  );
}

function CopyText({ text }: { text: string }) {
  return (
    <span className="pl-copy-text">
      <code>{text}</code>
      <CopyButton text={text} />
    </span>
  );
}

function Mono({ lines }: { lines: string[] }) {
  if (lines.length === 0) return <span className="pl-faint">–</span>;
  return (
    <>
      {lines.map((line) => (
        <code key={line} className="pl-block">
          {line}
        </code>
      ))}
    </>
  );
}

function Values({ values }: { values: Record<string, unknown> }) {
  return (
    <span className="pl-values">
      {Object.entries(values).map(([name, value]) => (
        <span key={name} className="pl-value">
          <span>{name}</span>
          <strong>{typeof value === 'string' ? value : JSON.stringify(value)}</strong>
        </span>
      ))}
    </span>
  );
}

function Resources({ facts }: { facts: FactsOf }) {
  const { job, jobs } = useText();
  const names = [...new Set([...Object.keys(facts.requests), ...Object.keys(facts.limits)])];
  const amount = (amounts: Record<string, string>, name: string) => parseQuantity(amounts[name] ?? '0') ?? 0;
  return (
    <span className="pl-values" title={job.facts.requestLimit}>
      {names.map((name) => (
        <span key={name} className="pl-value">
          <span>{resourceName(name, jobs.resources)}</span>
          <strong>{pairText(amount(facts.requests, name), amount(facts.limits, name), name !== 'cpu' && !name.includes('/'))}</strong>
        </span>
      ))}
    </span>
  );
}

function Location({ place }: { place: Place }) {
  const { job } = useText();
  if (place.sort === 'claim') return job.facts.claim(place.name, place.path);
  return place.sort === 'directory' ? job.facts.directory(place.name) : job.facts.bucket(place.name);
}

function Roles({ view }: { view: JobView }) {
  const { job } = useText();
  const words = job.roles;
  return (
    <Section title={words.title} isFlush>
      <div className="pl-table-scroll" tabIndex={0} role="region" aria-label={words.title}>
        <table className="pl-table">
          <thead>
            <tr>
              <th>{words.role}</th>
              <th>{words.count}</th>
              <th>{words.states}</th>
              <th>{words.policy}</th>
              <th>{words.restarts}</th>
            </tr>
          </thead>
          <tbody>
            {view.roles.map((role) => (
              <tr key={role.role}>
                <td>
                  <strong>{role.role}</strong>
                </td>
                <td className="pl-figures">{role.replicas}</td>
                <td>
                  <span className="pl-row">
                    {Object.entries(role.states).map(([state, count]) => (
                      <ReplicaStatus key={state} phase={state} count={count} />
                    ))}
                  </span>
                </td>
                <td>{role.restartPolicy || <span className="pl-faint">–</span>}</td>
                <td className="pl-figures">{role.restarts}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Conditions({ view }: { view: JobView }) {
  const { job } = useText();
  const words = job.conditions;
  return (
    <Section title={words.title} isFlush>
      {view.conditions.length === 0 ? (
        <p className="pl-faint pl-padded">{words.none}</p>
      ) : (
        <ul className="pl-conditions">
          {view.conditions.map((condition) => (
            <li key={condition.type} data-status={condition.status}>
              <div className="pl-row">
                <strong>{condition.type}</strong>
                <span className={condition.status === 'True' ? 'pl-truth pl-truth-true' : 'pl-truth'}>{condition.status === 'True' ? words.true : words.false}</span>
                {condition.reason !== '-' && condition.reason !== '' && <code>{condition.reason}</code>}
                <span className="pl-faint pl-push">
                  <Ago time={condition.lastTransitionTime} />
                </span>
              </div>
              {condition.message && <p translate="no">{condition.message}</p>}
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
