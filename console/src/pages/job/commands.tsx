/** What the command palette offers on the page of a job: what its buttons do, and its tabs. */
import { BellOutlined, CopyOutlined } from '@ant-design/icons';
import { cloneUrl, ICONS, useObstacle } from '../../actions/ActionButtons.tsx';
import type { ActionName } from '../../actions/types.ts';
import { useText } from '../../app/i18n.tsx';
import { useCommands } from '../../app/pageCommands.ts';
import { navigate } from '../../app/router.tsx';
import { useWatch } from '../../watches/useWatch.ts';
import { jobUrl } from '../jobs/cells.tsx';
import { TABS } from './tabs.ts';
import type { JobView } from './view.ts';

// What cannot be undone comes last.
const DELETE = 'action delete';

export function useJobCommands(view: JobView, isGone: boolean, ask: (action: ActionName) => void): void {
  const t = useText();
  const obstacle = useObstacle(view);
  const { isWatched, toggle } = useWatch();
  const isOver = view.phase === 'Succeeded' || view.phase === 'Failed';
  const actions = view.actions
    .filter((entry) => obstacle(entry) === '')
    .map(({ action }) => ({ id: `action ${action}`, label: action === 'delete' ? `${t.actions.names.delete}…` : t.actions.names[action], icon: ICONS[action], run: () => ask(action) }));
  const [last, first] = [actions.filter(({ id }) => id === DELETE), actions.filter(({ id }) => id !== DELETE)];
  const watch = { id: 'action watch', label: isWatched(view.uid) ? t.actions.watch.stop : t.actions.watch.start, icon: <BellOutlined />, run: () => toggle(view) };
  const clone = { id: 'action clone', label: t.actions.clone, icon: <CopyOutlined />, run: () => navigate(cloneUrl(view)) };
  const tabs = TABS.map((tab) => ({ id: `tab ${tab}`, label: t.job.tabs[tab], run: () => navigate(jobUrl(view, tab)) }));
  useCommands([...(isGone ? [] : [...first, ...(isOver ? [] : [watch]), clone]), ...tabs, ...(isGone ? [] : last)]);
}
