import { DeleteOutlined, FolderOpenOutlined, PlusOutlined } from '@ant-design/icons';
import { Button, Table } from 'antd';
import { useEffect, useState } from 'react';
import { api } from '../../app/api.ts';
import { useObjects } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { Link, navigate, pathOf } from '../../app/router.tsx';
import { useNamespace } from '../../app/session.tsx';
import { useIsNarrow } from '../jobs/layout.ts';
import { ClaimDialog } from '../../forms/ClaimDialog.tsx';
import { Ago, bytesText, Confirm, Empty, ErrorNotice, Loading, Page, parseQuantity } from '../../parts/index.ts';
import { claimFills, type Fill } from '../../volumes/client.ts';

interface Claim {
  metadata: { name: string; namespace: string; uid: string; creationTimestamp?: string };
  spec?: { accessModes?: string[]; storageClassName?: string; resources?: { requests?: { storage?: string } } };
  status?: { phase?: string; capacity?: { storage?: string } };
}

const AGAIN = 15_000;
const MODES: Record<string, string> = { ReadWriteOnce: 'RWO', ReadWriteMany: 'RWX', ReadOnlyMany: 'ROX', ReadWriteOncePod: 'RWOP' };

/** How full claims are, asked for again while the page is open; nothing for people who may not ask the nodes. */
function useFills(): ReadonlyMap<string, Fill> {
  const [fills, setFills] = useState<ReadonlyMap<string, Fill>>(new Map());
  useEffect(() => {
    const abort = new AbortController();
    const read = () => {
      if (document.visibilityState === 'visible') claimFills(abort.signal).then(setFills, () => undefined);
    };
    read();
    const timer = setInterval(read, AGAIN);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, []);
  return fills;
}

export function VolumeList() {
  const { volumes } = useText();
  const [namespace] = useNamespace();
  const middle = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  const { data, error, revision } = useObjects<Claim>(`/api/v1/${middle}persistentvolumeclaims`);
  const fills = useFills();
  const [isCreating, setCreating] = useState(false);
  const [doomed, setDoomed] = useState<Claim | null>(null);
  const create = (
    <Button type="primary" icon={<PlusOutlined />} onClick={() => setCreating(true)}>
      {volumes.create}
    </Button>
  );
  const isNarrow = useIsNarrow();
  const claims = [...(data ?? [])].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const fillOf = (claim: Claim) => fills.get(`${claim.metadata.namespace}/${claim.metadata.name}`);
  return (
    <Page name="volumes" title={volumes.title} revision={revision} actions={create}>
      {error && <ErrorNotice error={error} />}
      {data === undefined ? (
        !error && <Loading rows={8} />
      ) : data.length === 0 ? (
        <Empty title={volumes.empty} hint={volumes.emptyHint}>
          {create}
        </Empty>
      ) : isNarrow ? (
        claims.map((claim) => <ClaimCard key={claim.metadata.uid} claim={claim} fill={fillOf(claim)} onDelete={setDoomed} />)
      ) : (
        <Table<Claim>
          className="pl-card-table"
          size="middle"
          rowKey={(claim) => claim.metadata.uid}
          dataSource={claims}
          pagination={false}
          scroll={{ x: 'max-content' }}
          columns={[
            { key: 'name', title: volumes.name, render: (_, claim) => <Link to={claimUrl(claim)}><strong>{claim.metadata.name}</strong></Link> },
            ...(namespace === '' ? [{ key: 'namespace', title: volumes.namespace, render: (_: unknown, claim: Claim) => claim.metadata.namespace }] : []),
            { key: 'status', title: volumes.status, render: (_, claim) => <ClaimPhase claim={claim} /> },
            { key: 'fill', title: volumes.fill, width: 240, render: (_, claim) => <FillBar claim={claim} fill={fillOf(claim)} /> },
            { key: 'modes', title: volumes.modes, render: (_, claim) => <AccessModes claim={claim} /> },
            { key: 'class', title: volumes.storageClass, render: (_, claim) => claim.spec?.storageClassName || <span className="pl-faint">–</span> },
            { key: 'age', title: volumes.age, render: (_, claim) => <Ago time={claim.metadata.creationTimestamp} /> },
            {
              key: 'actions',
              align: 'right',
              render: (_, claim) => <ClaimActions claim={claim} onDelete={setDoomed} />,
            },
          ]}
        />
      )}
      <ClaimDialog name={isCreating ? '' : null} namespace={namespace || 'default'} onCancel={() => setCreating(false)} onDone={() => setCreating(false)} />
      <Confirm open={doomed !== null} title={volumes.deleteTitle(doomed?.metadata.name ?? '')} action={volumes.delete} isDangerous {...(doomed ? { typed: doomed.metadata.name } : {})} onCancel={() => setDoomed(null)} onConfirm={() => remove(doomed).then(() => setDoomed(null))}>
        <p>{volumes.deleteHint}</p>
      </Confirm>
    </Page>
  );
}

function ClaimPhase({ claim }: { claim: Claim }) {
  const words: Record<string, string> = useText().volumes.phases;
  const phase = claim.status?.phase;
  return <span className="pl-claim-phase" data-phase={phase}>{words[phase ?? ''] ?? phase}</span>;
}

function AccessModes({ claim }: { claim: Claim }) {
  const modes = claim.spec?.accessModes ?? [];
  return <span title={modes.join(', ')}>{modes.map((mode) => MODES[mode] ?? mode).join(', ')}</span>;
}

function ClaimActions({ claim, onDelete }: { claim: Claim; onDelete: (claim: Claim) => void }) {
  const { volumes } = useText();
  return (
    <span className="pl-row pl-volume-actions">
      <Button size="small" icon={<FolderOpenOutlined />} onClick={() => navigate(claimUrl(claim))}>
        {volumes.open}
      </Button>
      <Button size="small" danger icon={<DeleteOutlined />} aria-label={volumes.deleteTitle(claim.metadata.name)} onClick={() => onDelete(claim)} />
    </span>
  );
}

/** A claim on a phone. */
function ClaimCard({ claim, fill, onDelete }: { claim: Claim; fill: Fill | undefined; onDelete: (claim: Claim) => void }) {
  return (
    <article className="pl-job-card">
      <div className="pl-job-card-top">
        <Link to={claimUrl(claim)} className="pl-job-name">
          {claim.metadata.name}
        </Link>
        <ClaimPhase claim={claim} />
      </div>
      <FillBar claim={claim} fill={fill} />
      <div className="pl-job-card-facts pl-card-foot">
        <AccessModes claim={claim} />
        <span>{claim.spec?.storageClassName}</span>
        <Ago time={claim.metadata.creationTimestamp} />
        <ClaimActions claim={claim} onDelete={onDelete} />
      </div>
    </article>
  );
}

async function remove(claim: Claim | null): Promise<void> {
  if (claim === null) return;
  const { namespace, name, uid } = claim.metadata;
  await api.delete(`/k8s/api/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims/${encodeURIComponent(name)}`, { preconditions: { uid } });
}

function claimUrl(claim: Claim): string {
  return pathOf('volumes', claim.metadata.namespace, claim.metadata.name);
}

function FillBar({ claim, fill }: { claim: Claim; fill: Fill | undefined }) {
  const { volumes } = useText();
  const size = parseQuantity(claim.status?.capacity?.storage ?? claim.spec?.resources?.requests?.storage ?? '');
  if (fill === undefined) return <span className="pl-figures">{size === undefined ? '–' : bytesText(size)} <span className="pl-faint">{volumes.unknownFill}</span></span>;
  const total = fill.capacity || size || 1;
  const share = Math.min(1, fill.used / total);
  return (
    <div className="pl-fill" data-fill={fill.used}>
      <div className={share > 0.9 ? 'pl-fill-track pl-fill-high' : 'pl-fill-track'} role="img" aria-label={volumes.usedOf(bytesText(fill.used), bytesText(total))}>
        <span style={{ width: `${share * 100}%` }} />
      </div>
      <span className="pl-figures">{volumes.usedOf(bytesText(fill.used), bytesText(total))}</span>
    </div>
  );
}
