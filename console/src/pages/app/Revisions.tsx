import { RollbackOutlined } from '@ant-design/icons';
import { App, Button, Tooltip } from 'antd';
import { lazy, Suspense, useState } from 'react';
import { useObstacle } from '../../actions/ActionButtons.tsx';
import { useText } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';
import { Ago, Duration, Empty } from '../../parts/index.ts';
import { compareUrl } from '../compare/choice.ts';
import { jobUrl } from '../jobs/cells.tsx';
import { Pairs } from './Overview.tsx';
import { PhaseTag } from './PhaseTag.tsx';
import { sayValue } from './rows.ts';
import { appUrl } from './tabs.ts';
import type { AppRevision, AppView } from './view.ts';

const UpgradeDialog = lazy(() => import('./UpgradeDialog.tsx').then((module) => ({ default: module.UpgradeDialog })));
const MAX_CHANGES = 5;

/** What was run so far, newest first: what changed, how it ended, what it measured. */
export function Revisions({ view }: { view: AppView }) {
  const { apps } = useText();
  const { message } = App.useApp();
  const [target, setTarget] = useState<number>();
  if (view.revisions.length === 0) return <Empty title={apps.revisions.none} />;
  return (
    <>
      <ol className="pl-app-revisions">
        {view.revisions.map((revision) => (
          <RevisionItem key={revision.revision} revision={revision} view={view} onRollback={() => setTarget(revision.revision)} />
        ))}
      </ol>
      {target !== undefined && (
        <Suspense>
          <UpgradeDialog key={target} app={view} next={{ revision: target }} onClose={() => setTarget(undefined)} onDone={(number) => void message.success(apps.train.changed(view.name, number))} />
        </Suspense>
      )}
    </>
  );
}

function RevisionItem({ revision, view, onRollback }: { revision: AppRevision; view: AppView; onRollback: () => void }) {
  const { apps } = useText();
  const words = apps.revisions;
  const isCurrent = revision.revision === view.revision;
  const current = view.revisions.find((other) => other.revision === view.revision);
  // A rollback writes the application as a rerun does.
  const obstacle = useObstacle(view)(view.actions.find(({ action }) => action === 'rerun') ?? { action: 'rerun', possible: true, reason: null });
  return (
    <li data-revision-row={revision.revision} className={isCurrent ? 'pl-app-revision pl-app-current' : 'pl-app-revision'}>
      <div className="pl-app-revision-head">
        <strong className="pl-figures">{apps.revisionOf(revision.revision)}</strong>
        <PhaseTag phase={revision.phase} />
        {isCurrent && <span className="pl-app-badge">{words.current}</span>}
        <span className="pl-dots pl-soft">
          {(revision.started ?? revision.created) !== null && (
            <span>
              <Ago time={(revision.started ?? revision.created)!} />
            </span>
          )}
          {revision.started !== null && (revision.ended !== null || revision.phase === 'Running') && (
            <span>
              <Duration from={revision.started} to={revision.ended} />
            </span>
          )}
          {revision.askedBy !== '' && <span>{revision.askedBy}</span>}
          {revision.commit !== '' && (
            <span>
              <code title={revision.commit}>{revision.commit.slice(0, 12)}</code>
            </span>
          )}
        </span>
        <span className="pl-row pl-push">
          {revision.exists ? (
            <>
              <Link to={`${appUrl(view, 'logs')}?revision=${revision.revision}`}>{words.logs}</Link>
              <Link to={jobUrl({ namespace: view.namespace, kind: revision.kind, name: revision.job })}>{words.job}</Link>
            </>
          ) : (
            <Tooltip title={words.jobGone}>
              <Link to={`/history?${new URLSearchParams({ find: revision.job }).toString()}`} className="pl-gone">{revision.job}</Link>
            </Tooltip>
          )}
          {!isCurrent && revision.exists && current?.exists && <Link to={compareUrl([revision, current].map(({ kind, job }) => ({ namespace: view.namespace, kind, name: job })))}>{words.compare}</Link>}
          {!isCurrent && (
            <Tooltip title={obstacle}>
              <Button size="small" icon={<RollbackOutlined />} disabled={obstacle !== ''} onClick={onRollback} data-action="rollback">
                {words.rollback(revision.revision)}
              </Button>
            </Tooltip>
          )}
        </span>
      </div>
      <Changes revision={revision} />
      {Object.keys(revision.metrics).length > 0 && <Pairs values={revision.metrics} />}
      {revision.message !== '' && <p className="pl-tone-failed pl-wrap" lang="en">{revision.message}</p>}
    </li>
  );
}

function Changes({ revision }: { revision: AppRevision }) {
  const { apps } = useText();
  const words = apps.revisions;
  if (revision.isFirst) return <p className="pl-soft">{words.installed}</p>;
  if (revision.changes.length === 0) return <p className="pl-soft">{words.again}</p>;
  const shown = revision.changes.slice(0, MAX_CHANGES);
  const text = (value: unknown) => sayValue(value) || words.unset;
  return (
    <ul className="pl-app-changes">
      {shown.map((change) => (
        <li key={change.path}>
          <code>{change.path.replace(/^values\./, '')}</code> <span className="pl-faint">{text(change.old)}</span> → <strong>{text(change.new)}</strong>
        </li>
      ))}
      {revision.changes.length > shown.length && <li className="pl-faint">{words.more(revision.changes.length - shown.length)}</li>}
    </ul>
  );
}
