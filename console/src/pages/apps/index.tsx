import { AppstoreOutlined, CodeOutlined, DownOutlined, FileTextOutlined, PlusOutlined, SearchOutlined } from '@ant-design/icons';
import { Button, Dropdown, Input, Select, Table, type InputRef, type TableColumnType } from 'antd';
import { useMemo, useRef, useState, type MouseEvent } from 'react';
import { ActionDialog, type ActionRequest } from '../../actions/ActionDialog.tsx';
import type { ActionName, PossibleAction } from '../../actions/types.ts';
import { useObjects } from '../../app/hooks.ts';
import { useText, type Words } from '../../app/i18n.tsx';
import { useShortcut } from '../../app/keys.tsx';
import { Link, navigate, useQuery } from '../../app/router.tsx';
import { useNamespace } from '../../app/session.tsx';
import { Ago, Empty, ErrorNotice, Loading, Page } from '../../parts/index.ts';
import { AppMenu } from '../app/Header.tsx';
import { PhaseTag } from '../app/PhaseTag.tsx';
import { appUrl } from '../app/tabs.ts';
import { useGet, type Template } from '../create/Starts.tsx';
import { useIsNarrow } from '../jobs/layout.ts';
import { TEMPLATE } from '../train/values.ts';
import { listPath, PHASES, phaseOf, reasonOf, shownApps, updatedOf, type TrainingApp } from './list.ts';

export default function AppsPage() {
  const t = useText();
  const [namespace] = useNamespace();
  const { data, error, revision } = useObjects<TrainingApp>(listPath(namespace));
  const [query, setQuery] = useQuery();
  const [find, phase] = [query.get('find') ?? '', query.get('phase') ?? ''];
  const search = useRef<InputRef>(null);
  const shown = useMemo(() => shownApps(data ?? [], find, phase), [data, find, phase]);
  useShortcut('/', t.apps.find, () => search.current?.focus());
  return (
    <Page
      name="apps"
      title={t.apps.title}
      revision={revision}
      heading={
        <div className="pl-row">
          <h1>{t.apps.title}</h1>
          {data !== undefined && data.length > 0 && (
            <span className="pl-faint pl-figures" data-count={shown.length}>
              {t.apps.count(shown.length, data.length)}
            </span>
          )}
        </div>
      }
      actions={<NewApp />}
    >
      {error && <ErrorNotice error={error} />}
      {data === undefined ? (
        !error && <Loading rows={10} />
      ) : data.length === 0 ? (
        <Empty title={t.apps.emptyTitle} hint={t.apps.emptyHint}>
          <TemplateCards />
        </Empty>
      ) : (
        <>
          <div className="pl-filters">
            <Input ref={search} className="pl-search" allowClear prefix={<SearchOutlined aria-hidden />} aria-label={t.apps.find} placeholder={t.apps.find} value={find} onChange={(event) => setQuery({ find: event.target.value })} />
            <Select
              className="pl-facet"
              aria-label={t.apps.columns.status}
              allowClear
              placeholder={t.apps.columns.status}
              value={phase === '' ? undefined : phase}
              options={PHASES.map((name) => ({ value: name, label: t.apps.phases[name] }))}
              onChange={(next: string | undefined) => setQuery({ phase: next ?? null })}
            />
          </div>
          {shown.length === 0 ? (
            <Empty title={t.apps.noMatch}>
              <Button onClick={() => setQuery({ find: null, phase: null })}>{t.common.empty.clearFilters}</Button>
            </Empty>
          ) : (
            <List apps={shown} showsNamespace={namespace === ''} />
          )}
        </>
      )}
    </Page>
  );
}

/** Where a new application of a template begins. */
export function templateUrl(name: string): string {
  return name === TEMPLATE ? '/train' : `/train?template=${encodeURIComponent(name)}`;
}

const YAML_URL = '/create/TrainingApp';

/** All templates; the one that people most often want is first. */
function useTemplates(): { name: string; title: string; hint: string; isForeign: boolean }[] {
  const { apps } = useText();
  const { data } = useGet<{ templates: Template[] }>('/api/templates');
  const templates = data?.templates ?? Object.keys(apps.templates).map((name) => ({ name, description: '' }));
  return templates
    .map(({ name, description }) => ({ name, title: apps.templates[name]?.[0] ?? name, hint: apps.templates[name]?.[1] ?? description, isForeign: apps.templates[name] === undefined }))
    .sort((left, right) => Number(left.name !== TEMPLATE) - Number(right.name !== TEMPLATE));
}

function NewApp() {
  const { apps } = useText();
  const items = [...useTemplates().map(({ name, title }) => ({ key: templateUrl(name), label: title })), { type: 'divider' as const }, { key: YAML_URL, label: apps.fromYaml }];
  return (
    <Dropdown trigger={['click']} placement="bottomRight" menu={{ items, onClick: ({ key }) => navigate(key) }}>
      <Button type="primary" icon={<PlusOutlined />} data-action="new">
        {apps.create} <DownOutlined />
      </Button>
    </Dropdown>
  );
}

/** Ways to begin, each a card: 模型训练 first. */
function TemplateCards() {
  const { apps } = useText();
  return (
    <div className="pl-start">
      {useTemplates().map(({ name, title, hint, isForeign }) => (
        <Link key={name} to={templateUrl(name)} className="pl-start-card" data-template={name}>
          <span className="pl-start-icon" aria-hidden>
            {name === TEMPLATE ? <CodeOutlined /> : <AppstoreOutlined />}
          </span>
          <strong>{title}</strong>
          <span {...(isForeign ? { lang: 'en' } : {})}>{hint}</span>
        </Link>
      ))}
      <Link to={YAML_URL} className="pl-start-card">
        <span className="pl-start-icon" aria-hidden>
          <FileTextOutlined />
        </span>
        <strong>{apps.fromYaml}</strong>
        <span>{apps.fromYamlHint}</span>
      </Link>
    </div>
  );
}

/** What a row's menu offers; the server says the same, and has the last word. */
export function possibleActions(app: TrainingApp): PossibleAction[] {
  const phase = phaseOf(app);
  const isFinal = phase === 'Succeeded' || phase === 'Failed' || phase === 'Deleted';
  const refuse = (code: string) => ({ code, message: '', phase });
  const entry = (action: ActionName, code: string | null) => ({ action, possible: code === null, reason: code === null ? null : refuse(code) });
  if (phase === 'Terminating') return (['stop', 'resume', 'rerun', 'uninstall'] as const).map((action) => entry(action, 'BeingDeleted'));
  const isSuspended = app.spec?.suspend === true;
  return [entry('stop', isFinal ? 'Ended' : isSuspended ? 'AlreadyPaused' : null), entry('resume', isSuspended ? null : 'NotPaused'), entry('rerun', null), entry('uninstall', null)];
}

function targetOf({ metadata }: TrainingApp) {
  return { kind: 'TrainingApp', namespace: metadata.namespace, name: metadata.name, uid: metadata.uid };
}

function templateOf(app: TrainingApp, words: Words['apps']): string {
  const template = app.spec?.template;
  return template?.name ? `${template.name} ${template.version ?? ''}`.trim() : words.ownJob(app.spec?.job?.kind ?? '');
}

function List({ apps, showsNamespace }: { apps: TrainingApp[]; showsNamespace: boolean }) {
  const isNarrow = useIsNarrow();
  const [request, setRequest] = useState<ActionRequest | null>(null);
  const ask = (action: ActionName, app: TrainingApp) => setRequest({ action, targets: [targetOf(app)] });
  return (
    <>
      {isNarrow ? (
        <div className="pl-stack pl-live">
          {apps.map((app) => (
            <AppTile key={app.metadata.uid} app={app} showsNamespace={showsNamespace} onAction={(action) => ask(action, app)} />
          ))}
        </div>
      ) : (
        <AppTable apps={apps} showsNamespace={showsNamespace} onAction={ask} />
      )}
      <ActionDialog request={request} onClose={() => setRequest(null)} />
    </>
  );
}

interface TableProps {
  apps: TrainingApp[];
  showsNamespace: boolean;
  onAction: (action: ActionName, app: TrainingApp) => void;
}

function AppTable({ apps, showsNamespace, onAction }: TableProps) {
  const t = useText();
  const words = t.apps.columns;
  const columns: TableColumnType<TrainingApp>[] = [
    { key: 'status', title: words.status, width: 140, render: (_, app) => <PhaseTag phase={phaseOf(app)} /> },
    {
      key: 'name',
      title: words.name,
      render: (_, app) => (
        <span className="pl-app-lines">
          <Link to={appUrl(app.metadata)}>
            <strong>{app.metadata.name}</strong>
          </Link>
          {reasonOf(app) !== '' && <span className="pl-soft pl-wrap" lang="en">{reasonOf(app)}</span>}
        </span>
      ),
    },
    ...(showsNamespace ? [{ key: 'project', title: words.project, render: (_: unknown, app: TrainingApp) => app.metadata.namespace }] : []),
    { key: 'template', title: words.template, width: 230, render: (_, app) => templateOf(app, t.apps) },
    { key: 'revision', title: words.revision, width: 100, render: (_, app) => <span className="pl-figures">{app.status?.revision ?? '–'}</span> },
    { key: 'updated', title: words.updated, width: 150, render: (_, app) => (updatedOf(app) === '' ? '–' : <Ago time={updatedOf(app)} />) },
    { key: 'actions', title: <span className="pl-hidden">{words.actions}</span>, width: 60, render: (_, app) => <AppMenu target={targetOf(app)} possible={possibleActions(app)} onAction={(action) => onAction(action, app)} /> },
  ];
  return (
    <div className="pl-card-table pl-app-list pl-live">
      <Table<TrainingApp>
        size="middle"
        rowKey={(app) => app.metadata.uid}
        columns={columns}
        dataSource={apps}
        pagination={apps.length > 100 ? { pageSize: 100 } : false}
        onRow={(app) => ({ onClick: (event: MouseEvent) => open(event, app), 'data-app': app.metadata.name, 'data-phase': phaseOf(app) }) as object}
      />
    </div>
  );
}

function open(event: MouseEvent, app: TrainingApp): void {
  const target = event.target as HTMLElement;
  // Links and menus have a meaning of their own; so has a text that is being selected.
  if (target.closest('a, button, .ant-dropdown') || window.getSelection()?.toString()) return;
  navigate(appUrl(app.metadata));
}

function AppTile({ app, showsNamespace, onAction }: { app: TrainingApp; showsNamespace: boolean; onAction: (action: ActionName) => void }) {
  const { apps } = useText();
  return (
    <article className="pl-app-tile" data-app={app.metadata.name} data-phase={phaseOf(app)}>
      <header className="pl-row">
        <Link to={appUrl(app.metadata)}>
          <strong className="pl-wrap">{app.metadata.name}</strong>
        </Link>
        <PhaseTag phase={phaseOf(app)} />
        <span className="pl-push">
          <AppMenu target={targetOf(app)} possible={possibleActions(app)} onAction={onAction} />
        </span>
      </header>
      <p className="pl-dots pl-soft">
        {showsNamespace && <span>{app.metadata.namespace}</span>}
        <span>{templateOf(app, apps)}</span>
        {app.status?.revision !== undefined && <span>{apps.revisionOf(app.status.revision)}</span>}
        {updatedOf(app) !== '' && (
          <span>
            <Ago time={updatedOf(app)} />
          </span>
        )}
      </p>
      {reasonOf(app) !== '' && <p className="pl-soft pl-wrap" lang="en">{reasonOf(app)}</p>}
    </article>
  );
}
