import { ArrowLeftOutlined, EditOutlined, MoreOutlined } from '@ant-design/icons';
import { Button, Dropdown, Tooltip, type MenuProps } from 'antd';
import { ICONS, useObstacle } from '../../actions/ActionButtons.tsx';
import type { ActionName, PossibleAction, Target } from '../../actions/types.ts';
import { useText } from '../../app/i18n.tsx';
import { Link, navigate } from '../../app/router.tsx';
import { Ago, CopyButton } from '../../parts/index.ts';
import { PhaseTag } from './PhaseTag.tsx';
import type { AppView } from './view.ts';

export function Heading({ view }: { view: AppView }) {
  const { apps } = useText();
  return (
    <div className="pl-job-heading">
      <Link to="/apps" className="pl-back" aria-label={apps.back} title={apps.back}>
        <ArrowLeftOutlined aria-hidden />
      </Link>
      <div>
        <div className="pl-row">
          <h1>{view.name}</h1>
          <PhaseTag phase={view.phase} />
          <CopyButton text={view.name} />
        </div>
        <p className="pl-dots">
          {view.revision > 0 && <span data-revision-number={view.revision}>{apps.revisionOf(view.revision)}</span>}
          <span>{templateText(view, apps.ownJob)}</span>
          <span>{view.namespace}</span>
          {view.updated !== null && (
            <span>
              {apps.updatedAgo} <Ago time={view.updated} />
            </span>
          )}
          {view.askedBy !== '' && <span>{apps.askedBy(view.askedBy)}</span>}
        </p>
      </div>
    </div>
  );
}

/** The template with its version, or the kind of the job that the application has itself. */
export function templateText(app: { template: string; templateVersion: string; jobKind: string }, ownJob: (kind: string) => string): string {
  return app.template === '' ? ownJob(app.jobKind) : `${app.template} ${app.templateVersion}`.trim();
}

/** The URL of the form that changes an application's values. */
export function changeUrl({ namespace, name }: { namespace: string; name: string }): string {
  return `/train?app=${encodeURIComponent(`${namespace}/${name}`)}`;
}

/** What people most often want of an application in this phase. */
function usualActions(phase: string): ActionName[] {
  return phase === 'Stopped' ? ['resume', 'rerun'] : phase === 'Running' || phase === 'Pending' ? ['stop', 'rerun'] : ['rerun'];
}

export function HeaderActions({ view, onAction }: { view: AppView; onAction: (action: ActionName) => void }) {
  const t = useText();
  const obstacle = useObstacle(view);
  const entries = new Map(view.actions.map((entry) => [entry.action, entry]));
  const usual = usualActions(view.phase);
  return (
    <div className="pl-row pl-action-buttons">
      {view.template !== '' && (
        <Button icon={<EditOutlined />} onClick={() => navigate(changeUrl(view))} data-action="change">
          {t.apps.changeValues}
        </Button>
      )}
      {usual.map((action) => {
        const why = obstacle(entries.get(action) ?? { action, possible: true, reason: null });
        return (
          <Tooltip key={action} title={why}>
            <Button icon={ICONS[action]} disabled={why !== ''} onClick={() => onAction(action)} data-action={action}>
              {t.actions.names[action]}
            </Button>
          </Tooltip>
        );
      })}
      <AppMenu target={view} possible={view.actions} leaveOut={usual} onAction={onAction} />
    </div>
  );
}

interface MenuOf {
  target: Target;
  possible: PossibleAction[];
  leaveOut?: ActionName[];
  onAction: (action: ActionName) => void;
}

const ORDER: ActionName[] = ['stop', 'resume', 'rerun', 'uninstall'];

/** The other actions of an application, in a menu. */
export function AppMenu({ target, possible, leaveOut = [], onAction }: MenuOf) {
  const t = useText();
  const obstacle = useObstacle(target);
  const items: MenuProps['items'] = ORDER.filter((action) => !leaveOut.includes(action)).map((action) => {
    const why = obstacle(possible.find((entry) => entry.action === action) ?? { action, possible: true, reason: null });
    const isLast = action === 'uninstall';
    return {
      key: action,
      icon: ICONS[action],
      danger: isLast,
      disabled: why !== '',
      label: <span title={why}>{isLast ? `${t.actions.names[action]}…` : t.actions.names[action]}</span>,
    };
  });
  return (
    <Dropdown trigger={['click']} placement="bottomRight" menu={{ items, onClick: ({ key }) => onAction(key as ActionName) }}>
      <Button icon={<MoreOutlined />} aria-label={t.apps.actionsOf(target.name)} data-action="more" />
    </Dropdown>
  );
}
