/** Buttons for what can be done with a job; the usual one first, the rest in a menu. */
import {
  BugOutlined,
  CaretRightOutlined,
  ColumnHeightOutlined,
  CopyOutlined,
  DeleteOutlined,
  MoreOutlined,
  PauseOutlined,
  RedoOutlined,
  ReloadOutlined,
  StopOutlined,
} from '@ant-design/icons';
import { Button, Dropdown, Tooltip, type MenuProps } from 'antd';
import type { ReactNode } from 'react';
import { useText } from '../app/i18n.tsx';
import { navigate } from '../app/router.tsx';
import { useIsNarrow } from '../pages/jobs/layout.ts';
import { isAllowed, rightOf, useRights } from './rights.ts';
import type { ActionName, PossibleAction, Target } from './types.ts';
import { sayRefusal } from './words.ts';

export const ICONS: Record<ActionName, ReactNode> = {
  pause: <PauseOutlined />,
  resume: <CaretRightOutlined />,
  stop: <StopOutlined />,
  restart: <ReloadOutlined />,
  rerun: <RedoOutlined />,
  scale: <ColumnHeightOutlined />,
  debug: <BugOutlined />,
  delete: <DeleteOutlined />,
  suspend: <PauseOutlined />,
  uninstall: <DeleteOutlined />,
};

/** Why a button is disabled: the right that lacks, or the state of the job; empty if it works. */
export function useObstacle(target: Target): (entry: PossibleAction) => string {
  const t = useText();
  const rights = useRights(target.namespace);
  return ({ action, possible, reason }) => {
    const right = rightOf(action, target.kind);
    if (!isAllowed(rights, right)) return t.actions.missingRight(`${right.verb} ${right.resource}.${right.group}`, target.namespace);
    if (possible) return '';
    return reason === null ? t.common.phases.Unknown : sayRefusal(reason, t);
  };
}

/** Where a clone of a job begins: the form, filled with it. */
export function cloneUrl(target: Target): string {
  return `/create/${encodeURIComponent(target.kind)}?from=${encodeURIComponent(`${target.namespace}/${target.kind}/${target.name}`)}`;
}

/** The same for a job of the past, from its record. */
export function cloneRecordUrl(record: { namespace: string; name: string; kind: string }): string {
  return `/create/${encodeURIComponent(record.kind)}?record=${encodeURIComponent(`${record.namespace}/${record.name}`)}`;
}

/** What people most often want of a job in this phase. */
export function usualActions(phase: string): ActionName[] {
  if (phase === 'Failed' || phase === 'Succeeded') return ['rerun', 'debug'];
  if (phase === 'Paused') return ['resume'];
  return ['pause', 'stop', 'restart'];
}

const ORDER: ActionName[] = ['pause', 'resume', 'stop', 'restart', 'rerun', 'scale', 'debug', 'delete'];

interface Props {
  target: Target;
  phase: string;
  possible: PossibleAction[];
  onAction: (action: ActionName) => void;
}

export function ActionButtons({ target, phase, possible, onAction }: Props) {
  const t = useText();
  const obstacle = useObstacle(target);
  const entries = new Map(possible.map((entry) => [entry.action, entry]));
  // On a phone two buttons stay; the rest is in the menu.
  const isNarrow = useIsNarrow();
  const usual = usualActions(phase).slice(0, isNarrow ? 2 : undefined);
  const menu: MenuProps['items'] = ORDER.filter((action) => !usual.includes(action) && entries.has(action)).map((action) => {
    const why = obstacle(entries.get(action) as PossibleAction);
    return {
      key: action,
      icon: ICONS[action],
      danger: action === 'delete',
      disabled: why !== '',
      label: why === '' ? t.actions.names[action] : <Tooltip title={why} placement="left"><span className="pl-menu-label">{t.actions.names[action]}</span></Tooltip>,
    };
  });
  if (isNarrow) menu.unshift({ key: 'clone', icon: <CopyOutlined />, label: t.actions.clone });
  const choose = (key: string) => (key === 'clone' ? navigate(cloneUrl(target)) : onAction(key as ActionName));
  return (
    <div className="pl-row pl-action-buttons">
      {usual.map((action, index) => {
        const entry = entries.get(action) ?? { action, possible: true, reason: null };
        const why = obstacle(entry);
        return (
          <Tooltip key={action} title={why}>
            <Button
              icon={ICONS[action]}
              type={index === 0 && (phase === 'Failed' || phase === 'Paused') ? 'primary' : 'default'}
              disabled={why !== ''}
              onClick={() => onAction(action)}
              data-action={action}
            >
              {t.actions.names[action]}
            </Button>
          </Tooltip>
        );
      })}
      {!isNarrow && (
        <Button icon={<CopyOutlined />} onClick={() => choose('clone')} data-action="clone">
          {t.actions.clone}
        </Button>
      )}
      <Dropdown trigger={['click']} menu={{ items: menu, onClick: ({ key }) => choose(key) }} placement="bottomRight">
        <Button icon={<MoreOutlined />} aria-label={t.actions.more} data-action="more" />
      </Dropdown>
    </div>
  );
}
