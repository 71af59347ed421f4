import { Button } from 'antd';
import { useText } from '../../app/i18n.tsx';
import { api } from '../../app/api.ts';
import { CurvePanel } from '../../curves/CurvePanel.tsx';
import type { CurveRun } from '../../curves/data.ts';
import { usePolled } from '../../curves/useCurves.ts';
import { Empty, ErrorNotice, Loading, Section } from '../../parts/index.ts';
import { filesUrl, type ClaimRef } from '../../volumes/client.ts';

/** The curves of all event files beneath a folder. */
export function FolderCurves({ claim, path, onClose }: { claim: ClaimRef; path: string; onClose: () => void }) {
  const { curves, volumes } = useText();
  const url = filesUrl(claim, 'curves', { path, points: 1000 });
  const { data, error } = usePolled(url, (signal) => api.get<{ runs: CurveRun[] }>(url, { signal }), true);
  const hasCurves = data?.runs.some((run) => run.scalars.length > 0) ?? false;
  return (
    <Section title={curves.folder(claim.claim, path)} extra={<Button size="small" onClick={onClose}>{volumes.close}</Button>}>
      {error && <ErrorNotice error={error} />}
      {data === undefined ? !error && <Loading rows={6} /> : hasCurves ? <CurvePanel runs={data.runs} sync={url} /> : <Empty title={curves.noEvents} />}
    </Section>
  );
}
