/** Pieces that the job list, its cards and the overview share. */
import { useText, type Words } from '../../app/i18n.tsx';
import { pathOf } from '../../app/router.tsx';
import type { Row } from '../../app/rows.ts';
import { bytesText, coresText } from '../../parts/index.ts';
import { ready, wanted } from './filter.ts';
import { percent, readProgress } from './progress.ts';
import { useQueuePlace } from './queue.ts';
import { resourceName, shortagesIn, type Shortage } from './shortages.ts';

export function jobUrl({ namespace, kind, name }: Pick<Row, 'namespace' | 'kind' | 'name'>, tab?: string): string {
  return pathOf('jobs', namespace, kind, name, ...(tab ? [tab] : []));
}

const SHORT: Record<string, string> = {
  PyTorchTrainingJob: 'PyTorch',
  TensorFlowTrainingJob: 'TensorFlow',
  XGBoostTrainingJob: 'XGBoost',
  DeepSpeedJob: 'DeepSpeed',
  ColossalAIJob: 'ColossalAI',
  GenericJob: 'Generic',
  MPIJob: 'MPI',
  BeamJob: 'Beam',
};

/** A kind as people call it. */
export function shortKind(kind: string): string {
  return SHORT[kind] ?? kind.replace(/(Training)?Job$/, '');
}

export function Bar({ value, label, isMoving = false }: { value: number; label: string; isMoving?: boolean }) {
  return (
    <span className="pl-bar-track" role="progressbar" aria-valuenow={value} aria-valuemin={0} aria-valuemax={100} aria-label={label}>
      <span className={isMoving ? 'pl-bar-fill pl-bar-moving' : 'pl-bar-fill'} style={{ width: `${value}%` }} />
    </span>
  );
}

export function ProgressCell({ progress, phase }: { progress: unknown; phase: string }) {
  const { jobs } = useText();
  const known = readProgress(progress);
  if (known === null) return <span className="pl-faint">–</span>;
  const text = jobs.epoch(known.unit, known.done, known.total);
  return (
    <span className="pl-progress">
      <Bar value={percent(known)} label={text} isMoving={phase === 'Running'} />
      <span className="pl-figures pl-nowrap">{text}</span>
    </span>
  );
}

export function ReplicasCell({ row }: { row: Row }) {
  const [count, total] = [ready(row), wanted(row)];
  const title = Object.entries(row.replicas)
    .map(([type, [has, wants]]) => `${type} ${has}/${wants}`)
    .join(', ');
  return (
    <span className="pl-figures" title={title}>
      {count}/{total}
    </span>
  );
}

/** Request and limit of a resource; one number where they are equal. */
export function pairText(request: number, limit: number, isBytes: boolean): string {
  const say = isBytes ? bytesText : coresText;
  if (request === 0 && limit === 0) return '–';
  if (limit === 0 || request === limit) return say(request);
  const [first, second] = [say(request), say(limit)];
  const unit = / [A-Z]i?$/.exec(second)?.[0] ?? '';
  // 128/256 Mi: a unit that both have is said once.
  return unit !== '' && first.endsWith(unit) ? `${first.slice(0, -unit.length)}/${second}` : `${first}/${second}`;
}

function shortageText({ resource: name, asked, free }: Shortage, words: Words['jobs']): string {
  const resource = resourceName(name, words.resources);
  if (asked === '') return words.lacks(resource);
  return free === '' ? words.asks(asked, resource) : words.needs(asked, resource, free);
}

/** Why a job waits or failed, in one line: its place in the queue and what lacks in the person's words, else as the cluster says it. */
export function ReasonLine({ row }: { row: Row }) {
  const { jobs } = useText();
  const place = useQueuePlace(row);
  if (row.reason === '') return null;
  const shortages = row.phase === 'Failed' ? [] : shortagesIn(row.reason);
  const text = [
    ...(place === undefined ? [] : [jobs.place(place.position, place.length)]),
    ...(shortages.length === 0 ? [row.reason] : shortages.map((shortage) => shortageText(shortage, jobs))),
    ...(shortages.length > 0 && row.reason.includes('it can never run here') ? [jobs.neverRuns] : []),
  ].join(' · ');
  return (
    <span className={`pl-reason ${row.phase === 'Failed' ? 'pl-tone-failed' : 'pl-tone-pending'}`} title={row.reason} translate={shortages.length === 0 ? 'no' : undefined}>
      {text}
    </span>
  );
}
