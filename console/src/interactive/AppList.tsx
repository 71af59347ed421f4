import { PlusOutlined, SearchOutlined } from '@ant-design/icons';
import { Button, Input } from 'antd';
import { useState } from 'react';
import { useObjects } from '../app/hooks.ts';
import { useText } from '../app/i18n.tsx';
import { navigate, pathOf, useQuery } from '../app/router.tsx';
import { useNamespace } from '../app/session.tsx';
import { Empty, ErrorNotice, Loading, Page } from '../parts/index.ts';
import { AppCard } from './AppCard.tsx';
import type { AppName } from './embed.ts';
import { Question, type Asking } from './Question.tsx';
import { listPath, PLURALS, type AppKind, type Service } from './service.ts';

// Fewer are seen at a glance.
const SEARCH_FROM = 7;

/** All TensorBoards or notebooks of a project, as cards. */
export function AppList({ kind }: { kind: AppKind }) {
  const t = useText();
  const [namespace] = useNamespace();
  const { data, error, revision } = useObjects<Service>(listPath(kind, namespace));
  const [query, setQuery] = useQuery();
  const [asking, setAsking] = useState<Asking | null>(null);
  const words = query.get('find') ?? '';
  const shown = sorted(data ?? []).filter((service) => service.metadata.name.includes(words.trim().toLowerCase()));
  const create = (
    <Button type="primary" icon={<PlusOutlined />} onClick={() => navigate(pathOf('create', kind))}>
      {t.interactive.create[kind]}
    </Button>
  );
  return (
    <Page name={PLURALS[kind]} title={t.interactive[PLURALS[kind]]} description={t.interactive.about[kind]} revision={revision} actions={data?.length === 0 ? undefined : create}>
      {error && <ErrorNotice error={error} />}
      {!data && !error && <Loading height={220} />}
      {data && data.length >= SEARCH_FROM && (
        <Input
          className="pl-app-search"
          prefix={<SearchOutlined />}
          placeholder={t.interactive.find}
          aria-label={t.interactive.find}
          value={words}
          onChange={(event) => setQuery({ find: event.target.value })}
          allowClear
        />
      )}
      {data && data.length === 0 && (
        <Empty title={t.interactive.empty[kind]} hint={t.interactive.emptyHint[kind]}>
          {create}
        </Empty>
      )}
      {data && data.length > 0 && shown.length === 0 && (
        <Empty title={t.common.empty.noMatch}>
          <Button onClick={() => setQuery({ find: null })}>{t.common.empty.clearFilters}</Button>
        </Empty>
      )}
      {shown.length > 0 && (
        <ul className="pl-app-cards pl-live">
          {shown.map((service) => (
            <AppCard
              key={service.metadata.uid}
              kind={kind}
              service={service}
              showsNamespace={namespace === ''}
              onPause={() => setAsking({ action: 'pause', app: nameOf(kind, service) })}
              onDelete={() => setAsking({ action: 'delete', app: nameOf(kind, service) })}
            />
          ))}
        </ul>
      )}
      <Question asking={asking} onEnd={() => setAsking(null)} />
    </Page>
  );
}

function nameOf(kind: AppKind, { metadata }: Service): AppName {
  return { kind, namespace: metadata.namespace, name: metadata.name };
}

function sorted(services: Service[]): Service[] {
  const created = ({ metadata }: Service) => metadata.creationTimestamp ?? '';
  return [...services].sort((one, other) => created(other).localeCompare(created(one)) || one.metadata.name.localeCompare(other.metadata.name));
}
