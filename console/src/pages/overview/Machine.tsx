import { useView } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { bytesText, coresText, ErrorNotice, Loading, Section } from '../../parts/index.ts';
import { MachineHistory } from '../../usage/MachineHistory.tsx';
import type { OverviewView, ResourceUse } from './machine.ts';

export function Machine() {
  const t = useText();
  const { data, error } = useView<OverviewView>('overview', {});
  const words = t.overview;
  const ready = data?.nodes.filter((node) => node.isReady).length ?? 0;
  return (
    <Section title={words.machine} extra={data && <span className="pl-faint">{words.nodes(ready, data.nodes.length)}</span>}>
      {error?.code === 403 ? <p className="pl-faint">{words.noNodes}</p> : error && <ErrorNotice error={error} />}
      {data === undefined && !error && <Loading rows={3} />}
      {data && (
        <div className="pl-stack">
          {data.resources.map((use) => (
            <Meter key={use.resource} use={use} />
          ))}
          {data.hasUsage && <MachineHistory />}
          {!data.hasUsage && <p className="pl-faint">{words.noUsage}</p>}
        </div>
      )}
    </Section>
  );
}

function Meter({ use }: { use: ResourceUse }) {
  const { overview: words } = useText();
  const names: Record<string, string> = words.resource;
  const say = (amount: number) => (use.resource === 'cpu' ? coresText(amount) : use.resource.includes('/') ? String(amount) : bytesText(amount));
  const share = (amount: number) => `${Math.min(100, (amount / (use.allocatable || 1)) * 100)}%`;
  const total = say(use.allocatable);
  const isDevice = use.resource.includes('/');
  return (
    <div className="pl-meter" data-resource={use.resource}>
      <div className="pl-meter-text">
        <strong>{names[use.resource] ?? use.resource}</strong>
        <span className="pl-figures">
          {use.used !== null && !isDevice ? words.used(say(use.used), total) : words.requestedOf(say(use.requested), total)}
        </span>
      </div>
      <div className="pl-meter-track" role="img" aria-label={words.requestedOf(say(use.requested), total)}>
        <span className="pl-meter-requested" style={{ width: share(use.requested) }} />
        {use.used !== null && !isDevice && <span className="pl-meter-used" style={{ width: share(use.used) }} />}
      </div>
      <div className="pl-meter-foot pl-figures">
        {use.used !== null && !isDevice && <span>{words.requested(say(use.requested))}</span>}
        {use.waiting > 0 && <span className="pl-tone-pending">{words.waiting(say(use.waiting))}</span>}
      </div>
    </div>
  );
}
