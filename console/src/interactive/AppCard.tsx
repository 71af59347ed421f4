import { Button } from 'antd';
import type { ReactNode } from 'react';
import { useText, type Words } from '../app/i18n.tsx';
import { Link, navigate, pathOf } from '../app/router.tsx';
import { Ago, Facts } from '../parts/index.ts';
import { AppStatus } from './AppStatus.tsx';
import { claimsOf, imageOf, logPlaces, ownerOf, ownerUrl, pauseReason, phaseOf, PLURALS, sizeOf, waitingFor, type AppKind, type Service } from './service.ts';

interface Props {
  kind: AppKind;
  service: Service;
  showsNamespace: boolean;
  onPause: () => void;
  onDelete: () => void;
}

/** One TensorBoard or notebook: what it is for, how it is, and what can be done with it. */
export function AppCard({ kind, service, showsNamespace, onPause, onDelete }: Props) {
  const t = useText();
  const { name, namespace } = service.metadata;
  const phase = phaseOf(service);
  const place = pathOf(PLURALS[kind], namespace, name);
  const isDeleting = phase === 'Deleting';
  return (
    <li className="pl-app-card" data-name={name} data-phase={phase}>
      <header>
        <h2>
          <Link to={place}>{name}</Link>
          {showsNamespace && <span className="pl-faint"> {namespace}</span>}
        </h2>
        <AppStatus service={service} />
      </header>
      <Note service={service} />
      <Facts items={factsOf(kind, service, t)} />
      <footer>
        <Button type="primary" disabled={isDeleting} onClick={() => navigate(place)}>
          {phase === 'Paused' ? t.interactive.wake : t.interactive.open}
        </Button>
        <Button disabled={isDeleting || phase === 'Paused'} onClick={onPause}>
          {t.interactive.pause}
        </Button>
        <Button danger type="text" disabled={isDeleting} onClick={onDelete}>
          {t.interactive.delete}
        </Button>
      </footer>
    </li>
  );
}

/** Why it does not run: who paused it, or what it waits for, in the server's words. */
function Note({ service }: { service: Service }) {
  const t = useText();
  const phase = phaseOf(service);
  if (phase === 'Paused') return <p className="pl-app-note">{t.interactive.paused[pauseReason(service)]}</p>;
  const waiting = waitingFor(service);
  return phase === 'Initializing' && waiting !== '' ? <p className="pl-app-note pl-app-waiting" translate="no">{waiting}</p> : null;
}

type Fact = readonly [ReactNode, ReactNode];

function factsOf(kind: AppKind, service: Service, t: Words): Fact[] {
  const words = t.interactive;
  const owner = ownerOf(service);
  const first: Fact[] =
    kind === 'TensorBoard'
      ? [[words.shows, <Places key="places" places={logPlaces(service)} none={words.nothingShown} />]]
      : [
          [words.claims, <Places key="places" places={claimsOf(service)} none={words.noClaim} />],
          [words.image, <span key="image" className="pl-mono">{imageOf(service) || words.defaultImage}</span>],
        ];
  const isApp = owner?.kind === 'TrainingApp';
  const job: Fact[] = owner ? [[isApp ? t.job.facts.application : words.job, <Link key="job" to={ownerUrl(service.metadata.namespace, owner)}>{owner.name}</Link>]] : [];
  const used = service.status?.lastActivity;
  return [
    ...first,
    ...job,
    [words.size, sizeText(service, t)],
    // JupyterLab counts its use by itself and tells nobody.
    used ? [kind === 'Notebook' ? words.started : words.lastUsed, <Ago key="used" time={used} />] : [words.created, <Ago key="used" time={service.metadata.creationTimestamp} />],
  ];
}

function Places({ places, none }: { places: string[]; none: string }) {
  if (places.length === 0) return <span className="pl-faint">{none}</span>;
  return (
    <ul className="pl-app-places">
      {places.map((place) => (
        <li key={place} className="pl-mono">
          {place}
        </li>
      ))}
    </ul>
  );
}

function sizeText(service: Service, t: Words): string {
  const { cpu, memory, devices } = sizeOf(service);
  const parts = [
    ...(cpu ? [t.interactive.cores(cpu)] : []),
    ...(memory ? [t.interactive.memory(memory)] : []),
    ...devices.map(([name, count]) => `${count} × ${name}`),
  ];
  return parts.length > 0 ? parts.join(' · ') : t.interactive.noSize;
}
