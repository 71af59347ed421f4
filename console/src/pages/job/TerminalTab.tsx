import { Select } from 'antd';
import { useText } from '../../app/i18n.tsx';
import { useQuery } from '../../app/router.tsx';
import { Empty } from '../../parts/index.ts';
import { Terminal } from '../../terminal/index.ts';
import type { JobView } from './view.ts';

export function TerminalTab({ view }: { view: JobView }) {
  const { job } = useText();
  const [query, setQuery] = useQuery();
  const shells = view.replicas
    .filter((replica) => replica.phase === 'Running' && replica.isCurrent)
    .flatMap((replica) => replica.containers.map((container) => ({ replica, container, value: `${replica.pod}/${container}` })));
  const chosen = shells.find((shell) => shell.value === `${query.get('pod') ?? ''}/${query.get('container') ?? shell.container}`) ?? shells[0];
  if (chosen === undefined) return <Empty title={job.terminal.none} hint={job.terminal.noneHint} />;
  return (
    <div className="pl-job-terminal">
      {shells.length > 1 && (
        <Select
          className="pl-facet"
          aria-label={job.replicas.replica}
          value={chosen.value}
          popupMatchSelectWidth={false}
          onChange={(value) => {
            const shell = shells.find((candidate) => candidate.value === value);
            if (shell) setQuery({ pod: shell.replica.pod, container: shell.container });
          }}
          options={shells.map((shell) => ({ value: shell.value, label: `${shell.replica.replica} · ${shell.container}` }))}
        />
      )}
      <Terminal namespace={view.namespace} pod={chosen.replica.pod} container={chosen.container} />
    </div>
  );
}
