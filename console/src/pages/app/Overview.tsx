/** What the application is, what it is made of, and what happened last. */
import { Alert } from 'antd';
import type { ReactNode } from 'react';
import { useText } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';
import { Ago, CopyButton, Duration, Empty, Facts, Section, StatusIcon } from '../../parts/index.ts';
import { CauseBox } from '../job/CauseBox.tsx';
import type { JobView } from '../job/view.ts';
import { jobUrl } from '../jobs/cells.tsx';
import { templateText } from './Header.tsx';
import { countRoles, lastEvents, sayValue } from './rows.ts';
import { PhaseTag } from './PhaseTag.tsx';
import { appUrl } from './tabs.ts';
import type { AppView } from './view.ts';

const MAX_EVENTS = 8;

/** Why it waits or failed: the job's own box if there is one, else what the application's status says. */
export function Cause({ view }: { view: AppView }) {
  const { apps } = useText();
  // The box of a cause needs nothing else of a job's page.
  if (view.job?.cause) return <CauseBox view={view.job as JobView} />;
  if (view.waiting !== '') return <Alert type="warning" showIcon title={apps.waits} description={<span className="pl-wrap" lang="en">{view.waiting}</span>} data-waiting />;
  if (view.phase === 'Failed' && view.message !== '') return <Alert type="error" showIcon title={apps.failed} description={<span className="pl-wrap" lang="en">{view.message}</span>} />;
  return null;
}

export function Overview({ view }: { view: AppView }) {
  return (
    <div className="pl-summary-grid">
      <FactList view={view} />
      <div className="pl-summary-side">
        <Parts view={view} />
        <LastEvents view={view} />
      </div>
    </div>
  );
}

function FactList({ view }: { view: AppView }) {
  const { apps } = useText();
  const words = apps.overview;
  const { effective } = view.values;
  const current = view.revisions.find(({ revision }) => revision === view.revision);
  const facts = view.job?.facts;
  const commit = facts?.source.commit || current?.commit || '';
  const data = effective.data as { claim?: string; bucket?: string; secret?: string } | undefined;
  const git = effective.git as { url?: string } | undefined;
  const rows: (readonly [string, ReactNode] | false)[] = [
    [words.job, view.jobName === '' ? words.noJob : view.job ? <Link to={jobUrl({ namespace: view.namespace, kind: view.jobKind, name: view.jobName })}>{view.jobName}</Link> : view.jobName],
    [words.template, templateText(view, apps.ownJob)],
    typeof effective.framework === 'string' && [words.framework, effective.framework],
    git?.url !== undefined && [words.repository, <code key="g">{git.url}</code>],
    commit !== '' && [
      words.commit,
      <span key="c" className="pl-row">
        <code title={commit}>{commit.slice(0, 12)}</code>
        <CopyButton text={commit} />
      </span>,
    ],
    typeof effective.command === 'string' && effective.command !== '' && [words.command, <code key="k" className="pl-wrap">{effective.command}</code>],
    data !== undefined && [words.data, data.claim ? words.claim(data.claim) : data.bucket || data.secret ? words.bucket(data.bucket || data.secret || '') : words.noData],
    current !== undefined && Object.keys(current.hyperparameters).length > 0 && [words.hyperparameters, <Pairs key="h" values={current.hyperparameters} />],
    current !== undefined && Object.keys(current.metrics).length > 0 && [words.metrics, <Pairs key="m" values={current.metrics} />],
    current !== undefined && current.results !== '' && [words.results, <Results key="r" text={current.results} />],
    [words.created, view.created === null ? null : <Ago key="t" time={view.created} />],
    facts?.started != null && [words.started, <Ago key="s" time={facts.started} />],
    facts?.ended != null && [words.ended, <Ago key="e" time={facts.ended} />],
    facts?.started != null && [words.duration, <Duration key="d" from={facts.started} to={facts.ended} />],
  ];
  return (
    <Section title={words.facts}>
      <Facts items={rows.filter((row) => row !== false)} />
    </Section>
  );
}

export function Pairs({ values }: { values: Record<string, unknown> }) {
  return (
    <span className="pl-values">
      {Object.entries(values).map(([name, value]) => (
        <span key={name} className="pl-value">
          <span>{name}</span>
          <strong>{sayValue(value)}</strong>
        </span>
      ))}
    </span>
  );
}

function Parts({ view }: { view: AppView }) {
  const { apps } = useText();
  const counts = countRoles(view.services);
  return (
    <Section title={apps.overview.parts} extra={<Link to={appUrl(view, 'services')}>{apps.tabs.services}</Link>}>
      {counts.length === 0 ? (
        <p className="pl-faint">{apps.services.noneHint}</p>
      ) : (
        <ul className="pl-app-parts">
          {counts.map((count) => (
            <li key={count.role} data-role={count.role}>
              <strong>{count.role}</strong>
              <span className="pl-figures">
                {count.running > 0 ? count.running : count.ended}/{count.services}
              </span>
              <span className="pl-row">
                {count.running > 0 && <PhaseTag phase="Running" />}
                {count.failed > 0 && <PhaseTag phase="Failed" />}
                {count.running === 0 && count.failed === 0 && <PhaseTag phase={count.ended === count.services ? endOf(view, count.role) : 'Pending'} />}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** Where results are, as the template says it: a claim and a folder, or something else. */
function Results({ text }: { text: string }) {
  const words = useText().apps.overview;
  const [, claim, folder] = /^claim ([a-z0-9.-]+), folder ([^;]+)/.exec(text) ?? [];
  return claim !== undefined && folder !== undefined ? <span>{words.place(claim, folder)}</span> : <span lang="en">{text}</span>;
}

/** How the services of a role ended. */
function endOf(view: AppView, role: string): string {
  return view.services.some((service) => service.role === role && service.state === 'Succeeded') ? 'Succeeded' : 'Stopped';
}

function LastEvents({ view }: { view: AppView }) {
  const { apps, reasons, job } = useText();
  const events = lastEvents(view, MAX_EVENTS);
  return (
    <Section title={apps.overview.events} isFlush>
      {events.length === 0 ? (
        <Empty title={apps.overview.noEvents} />
      ) : (
        <ol className="pl-events pl-app-events">
          {events.map((event) => (
              <li key={event.uid} className={event.type === 'Warning' ? 'pl-event pl-event-warning' : 'pl-event'} data-reason={event.reason}>
                <span className="pl-event-reason" title={(reasons as Record<string, readonly string[]>)[event.reason]?.[0] ?? ''}>
                  {event.type === 'Warning' && <StatusIcon tone="pending" label={job.events.warnings} />}
                  <code>{event.reason}</code>
                </span>
                <span className="pl-event-time">
                  <Ago time={event.time} />
                </span>
                <span className="pl-event-text">
                  <span className="pl-wrap" lang="en">{event.message}</span>
                  <span className="pl-faint">{event.object}</span>
                </span>
              </li>
          ))}
        </ol>
      )}
    </Section>
  );
}
