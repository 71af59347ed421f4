import { Button, Table, type TableColumnType } from 'antd';
import { useObjects } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { Link } from '../../app/router.tsx';
import { AppFrame } from '../../interactive/AppFrame.tsx';
import { listPath, type Service } from '../../interactive/service.ts';
import { Empty, Facts } from '../../parts/index.ts';
import { useIsNarrow } from '../jobs/layout.ts';
import { explained, Why } from './explained.tsx';
import { PhaseTag } from './PhaseTag.tsx';
import { appUrl } from './tabs.ts';
import type { AppRoute, AppView } from './view.ts';

/** The URL of a route: its TensorBoard, opened in place. */
export function routeUrl(view: Pick<AppView, 'namespace' | 'name'>, route: Pick<AppRoute, 'name'>): string {
  return `${appUrl(view, 'routes')}?${new URLSearchParams({ open: route.name }).toString()}`;
}

/** One TensorBoard of the application, in a frame; the way back leads to its routes. */
export function OpenRoute({ view, route, revision }: { view: AppView; route: AppRoute; revision: string | undefined }) {
  const { apps } = useText();
  const { data } = useObjects<Service>(listPath('TensorBoard', view.namespace));
  const service = data?.find((candidate) => candidate.metadata.name === route.tensorboard);
  return <AppFrame app={{ kind: 'TensorBoard', namespace: view.namespace, name: route.tensorboard }} service={service} revision={revision} back={{ to: appUrl(view, 'routes'), label: apps.routes.close }} />;
}

/** The routes of an application: tensorboardN leads to the curves of worker N. */
export function Routes({ view }: { view: AppView }) {
  const { apps } = useText();
  const isNarrow = useIsNarrow();
  if (view.routes.length === 0) return <Empty title={apps.routes.none} hint={apps.routes.noneHint} />;
  return isNarrow ? (
    <div className="pl-stack">
      {view.routes.map((route) => (
        <RouteCard key={route.name} route={route} view={view} />
      ))}
    </div>
  ) : (
    <RouteTable view={view} />
  );
}

function OpenButton({ view, route }: { view: AppView; route: AppRoute }) {
  const { apps } = useText();
  return (
    <Link to={routeUrl(view, route)} aria-label={apps.routes.open(route.name)} className="pl-app-open">
      {apps.routes.openShort}
    </Link>
  );
}

function Shows({ route }: { route: AppRoute }) {
  const { apps } = useText();
  return route.worker === null ? apps.routes.all : apps.routes.worker(route.worker);
}

function Folders({ route }: { route: AppRoute }) {
  return (
    <span className="pl-app-lines">
      {route.folders.map((folder) => (
        <code key={folder} className="pl-wrap">
          {folder}
        </code>
      ))}
    </span>
  );
}

function Outside({ route }: { route: AppRoute }) {
  const { apps } = useText();
  if (!/^https?:\/\//.test(route.address)) return <span className="pl-faint">{route.address || apps.routes.inside}</span>;
  return (
    <Button type="link" size="small" href={route.address} target="_blank" rel="noopener noreferrer" className="pl-app-address">
      {route.address}
    </Button>
  );
}

function RouteTable({ view }: { view: AppView }) {
  const { apps } = useText();
  const words = apps.routes;
  const columns: TableColumnType<AppRoute>[] = [
    { key: 'name', title: words.name, render: (_, route) => <Link to={routeUrl(view, route)}>{route.name}</Link> },
    { key: 'shows', title: words.shows, render: (_, route) => <Shows route={route} /> },
    { key: 'state', title: words.state, render: (_, route) => <PhaseTag phase={route.phase} /> },
    { key: 'folders', title: words.folders, width: 180, render: (_, route) => <Folders route={route} /> },
    { key: 'address', title: words.address, width: 200, render: (_, route) => <Outside route={route} /> },
    { key: 'open', title: '', width: 80, className: 'pl-nowrap', render: (_, route) => <OpenButton view={view} route={route} /> },
  ];
  return (
    <div className="pl-card-table pl-table-scroll">
      <Table<AppRoute> size="middle" rowKey="name" columns={columns} dataSource={view.routes} expandable={explained(view.routes, (route) => route.name, (route) => route.waiting)} pagination={view.routes.length > 100 ? { pageSize: 100 } : false} onRow={(route) => ({ 'data-route': route.name }) as object} />
    </div>
  );
}

function RouteCard({ route, view }: { route: AppRoute; view: AppView }) {
  const { apps } = useText();
  const words = apps.routes;
  return (
    <article className="pl-app-part" data-route={route.name}>
      <header className="pl-row">
        <strong>{route.name}</strong>
        <PhaseTag phase={route.phase} />
        <span className="pl-push">
          <OpenButton view={view} route={route} />
        </span>
      </header>
      <Why text={route.waiting} />
      <Facts
        items={[
          [words.shows, <Shows key="s" route={route} />],
          [words.folders, <Folders key="f" route={route} />],
          [words.address, <Outside key="a" route={route} />],
        ]}
      />
    </article>
  );
}
