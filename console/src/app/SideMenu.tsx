import { AppstoreOutlined, DashboardOutlined, DatabaseOutlined, DiffOutlined, ExperimentOutlined, FileTextOutlined, InfoCircleOutlined, LineChartOutlined, SettingOutlined, UnorderedListOutlined } from '@ant-design/icons';
import type { ReactNode } from 'react';
import { useText } from './i18n.tsx';
import { Link, useRoute, type PageName } from './router.tsx';

interface Item {
  to: string;
  icon: ReactNode;
  label: string;
  /** Pages that belong to this item. */
  pages: readonly PageName[];
}

/** Where the list of a kind is that is created as jobs are. */
const CREATED: Record<string, string> = { Notebook: '/notebooks', TensorBoard: '/tensorboards', TrainingApp: '/apps' };

function MenuItem({ item }: { item: Item }) {
  const { page, params } = useRoute();
  const isCurrent = item.to === (page === 'create' ? (CREATED[params.kind ?? ''] ?? '/jobs') : item.pages.includes(page as PageName) ? item.to : '');
  return (
    <li>
      <Link to={item.to} className="pl-nav-item" aria-current={isCurrent ? 'page' : undefined}>
        {item.icon}
        <span>{item.label}</span>
      </Link>
    </li>
  );
}

function Group({ title, items }: { title?: string; items: readonly Item[] }) {
  return (
    <div className="pl-nav-group">
      {title && <h2>{title}</h2>}
      <ul>
        {items.map((item) => (
          <MenuItem key={item.to} item={item} />
        ))}
      </ul>
    </div>
  );
}

export function SideMenu() {
  const { nav } = useText().common;
  return (
    <nav className="pl-nav" aria-label={nav.label}>
      <Group items={[{ to: '/', icon: <DashboardOutlined />, label: nav.overview, pages: ['overview'] }]} />
      <Group
        title={nav.training}
        items={[
          { to: '/jobs', icon: <UnorderedListOutlined />, label: nav.jobs, pages: ['jobs', 'job', 'create'] },
          { to: '/apps', icon: <AppstoreOutlined />, label: nav.apps, pages: ['apps', 'app', 'train'] },
          { to: '/compare', icon: <DiffOutlined />, label: nav.compare, pages: ['compare'] },
          { to: '/history', icon: <FileTextOutlined />, label: nav.history, pages: ['history'] },
        ]}
      />
      <Group
        title={nav.workbench}
        items={[
          { to: '/notebooks', icon: <ExperimentOutlined />, label: nav.notebooks, pages: ['notebooks'] },
          { to: '/tensorboards', icon: <LineChartOutlined />, label: nav.tensorboards, pages: ['tensorboards'] },
        ]}
      />
      <Group title={nav.data} items={[{ to: '/volumes', icon: <DatabaseOutlined />, label: nav.volumes, pages: ['volumes'] }]} />
      <div className="pl-nav-space" />
      <Group
        items={[
          { to: '/settings', icon: <SettingOutlined />, label: nav.settings, pages: ['settings'] },
          { to: '/about', icon: <InfoCircleOutlined />, label: nav.about, pages: ['about'] },
        ]}
      />
    </nav>
  );
}
