import { Alert, Table, type TableColumnType } from 'antd';
import { useText } from '../../app/i18n.tsx';
import { Link, pathOf } from '../../app/router.tsx';
import { Ago, Empty, Facts } from '../../parts/index.ts';
import { useIsNarrow } from '../jobs/layout.ts';
import { jobUrl } from '../jobs/cells.tsx';
import { explained, Why } from './explained.tsx';
import { PhaseTag } from './PhaseTag.tsx';
import { isFinished } from './rows.ts';
import { serviceLogUrl } from './tabs.ts';
import type { AppService, AppView } from './view.ts';

/** The services of an application: each replica of its training, and each TensorBoard. */
export function Services({ view }: { view: AppView }) {
  const { apps } = useText();
  const isNarrow = useIsNarrow();
  if (view.services.length === 0) return <Empty title={apps.services.none} hint={apps.services.noneHint} />;
  return (
    <div className="pl-stack">
      {isFinished(view.services) && <Alert type="success" showIcon title={apps.services.finished} data-finished />}
      {isNarrow ? view.services.map((service) => <ServiceCard key={service.name} service={service} view={view} />) : <ServiceTable view={view} />}
    </div>
  );
}

function Address({ service }: { service: AppService }) {
  if (service.address === '' && service.service === '') return <span className="pl-faint">–</span>;
  const ports = service.ports.length > 0 ? `:${service.ports.join(',')}` : '';
  return (
    <span className="pl-app-lines">
      {service.address !== '' && <code>{service.address}</code>}
      {service.service !== '' && (
        <code className="pl-faint">
          {service.service}
          {ports}
        </code>
      )}
    </span>
  );
}

function Belongs({ service, view }: { service: AppService; view: AppView }) {
  const to = service.kind === 'TensorBoard' ? pathOf('tensorboards', view.namespace, service.object) : jobUrl({ namespace: view.namespace, kind: service.kind, name: service.object });
  return <Link to={to} className="pl-nowrap">{service.object}</Link>;
}

function whyOf(service: AppService): string {
  return service.state === 'Succeeded' ? '' : service.reason;
}

function ServiceTable({ view }: { view: AppView }) {
  const { apps } = useText();
  const words = apps.services;
  const columns: TableColumnType<AppService>[] = [
    { key: 'name', title: words.name, render: (_, service) => <strong>{service.name}</strong> },
    { key: 'role', title: words.role, render: (_, service) => service.role },
    { key: 'state', title: words.state, render: (_, service) => <PhaseTag phase={service.state} /> },
    {
      key: 'running',
      title: words.running,
      render: (_, service) => (
        <span className="pl-figures">
          {service.running} / {service.desired}
        </span>
      ),
    },
    { key: 'restarts', title: words.restarts, render: (_, service) => <span className="pl-figures">{service.restarts}</span> },
    { key: 'address', title: words.address, render: (_, service) => <Address service={service} /> },
    { key: 'object', title: words.object, render: (_, service) => <Belongs service={service} view={view} /> },
    { key: 'since', title: words.since, render: (_, service) => (service.since === null ? '–' : <Ago time={service.since} />) },
    { key: 'log', title: '', render: (_, service) => <Link to={serviceLogUrl(view, service.name)}>{words.log}</Link> },
  ];
  return (
    <div className="pl-card-table pl-table-scroll pl-app-table">
      <Table<AppService> size="middle" rowKey="name" columns={columns} dataSource={view.services} expandable={explained(view.services, (service) => service.name, whyOf)} pagination={view.services.length > 100 ? { pageSize: 100 } : false} onRow={(service) => ({ 'data-service': service.name, 'data-state': service.state }) as object} />
    </div>
  );
}

function ServiceCard({ service, view }: { service: AppService; view: AppView }) {
  const { apps } = useText();
  const words = apps.services;
  return (
    <article className="pl-app-part" data-service={service.name} data-state={service.state}>
      <header className="pl-row">
        <strong>{service.name}</strong>
        <PhaseTag phase={service.state} />
        <Link className="pl-push" to={serviceLogUrl(view, service.name)}>
          {words.log}
        </Link>
      </header>
      <Why text={whyOf(service)} />
      <Facts
        items={[
          [words.role, service.role],
          [words.running, `${service.running} / ${service.desired}`],
          [words.restarts, service.restarts],
          [words.address, <Address key="a" service={service} />],
          [words.object, <Belongs key="b" service={service} view={view} />],
        ]}
      />
    </article>
  );
}
