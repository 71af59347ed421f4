import { Alert, Tabs } from 'antd';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { ActionDialog, type ActionRequest } from '../../actions/ActionDialog.tsx';
import type { ApiError } from '../../app/api.ts';
import { useView } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { useAnnounce } from '../../app/keys.tsx';
import { Link, navigate, useQuery, useRoute } from '../../app/router.tsx';
import { Empty, ErrorNotice, Loading, Page } from '../../parts/index.ts';
import { Containers } from './Containers.tsx';
import { Heading, HeaderActions } from './Header.tsx';
import { Cause, Overview } from './Overview.tsx';
import { Revisions } from './Revisions.tsx';
import { OpenRoute, Routes } from './Routes.tsx';
import { Services } from './Services.tsx';
import { appUrl, readTab, TABS, type Tab } from './tabs.ts';
import type { AppView } from './view.ts';
import './app.css';

const LogTab = lazy(() => import('./LogTab.tsx').then((module) => ({ default: module.LogTab })));
const Values = lazy(() => import('./Values.tsx').then((module) => ({ default: module.Values })));

export default function AppPage() {
  const { apps } = useText();
  const { params } = useRoute();
  const [query] = useQuery();
  const { namespace = '', name = '' } = params;
  const { data: view, error, revision } = useView<AppView>('app', { namespace, name });
  const tab = readTab(params.tab);
  if (view === undefined) {
    return (
      <Page name="app" title={name}>
        {error?.code === 404 ? (
          <Empty title={apps.notFound} hint={apps.notFoundHint}>
            <Link to="/apps">{apps.back}</Link>
          </Empty>
        ) : error ? (
          <ErrorNotice error={error} />
        ) : (
          <Loading rows={14} />
        )}
      </Page>
    );
  }
  const route = tab === 'routes' ? view.routes.find((candidate) => candidate.name === query.get('open')) : undefined;
  if (route) return <OpenRoute key={route.uid} view={view} route={route} revision={revision} />;
  // Another application may come to have the name: its page begins anew.
  return <Application key={view.uid} view={view} revision={revision} error={error} tab={tab} />;
}

interface Props {
  view: AppView;
  revision: string | undefined;
  error: ApiError | undefined;
  tab: Tab;
}

function Application({ view, revision, error, tab }: Props) {
  const t = useText();
  const [request, setRequest] = useState<ActionRequest | null>(null);
  useAnnouncedPhase(view);
  const isGone = error?.code === 404;
  const isFull = tab === 'logs';
  const counts: Partial<Record<Tab, number>> = { services: view.services.length, routes: view.routes.length, revisions: view.revisions.length };
  return (
    <Page
      name="app"
      title={view.name}
      revision={revision}
      isFull={isFull}
      heading={<Heading view={view} />}
      actions={isGone ? undefined : <HeaderActions view={view} onAction={(action) => setRequest({ action, targets: [view] })} />}
    >
      {isGone && <Alert type="warning" showIcon title={t.apps.deleted} description={t.apps.deletedHint} data-deleted />}
      {!isGone && view.isDeleting && <Alert type="info" showIcon title={t.apps.deleting} />}
      {!isGone && error !== undefined && <ErrorNotice error={error} />}
      {!isFull && (
        <div className="pl-live">
          <Cause view={view} />
        </div>
      )}
      <Tabs
        className="pl-job-tabs"
        activeKey={tab}
        onChange={(key) => navigate(appUrl(view, key as Tab))}
        items={TABS.map((key) => ({
          key,
          label: (
            <span>
              {t.apps.tabs[key]}
              {counts[key] !== undefined && counts[key] > 0 && <span className="pl-tab-count pl-figures">{counts[key]}</span>}
            </span>
          ),
        }))}
      />
      <div className={isFull ? 'pl-job-body pl-job-body-full pl-live' : 'pl-job-body pl-live'} data-tab={tab} data-phase={view.phase}>
        <Suspense fallback={<Loading rows={8} />}>
          {tab === 'overview' && <Overview view={view} />}
          {tab === 'services' && <Services view={view} />}
          {tab === 'containers' && <Containers view={view} />}
          {tab === 'logs' && <LogTab view={view} />}
          {tab === 'routes' && <Routes view={view} />}
          {tab === 'revisions' && <Revisions view={view} />}
          {tab === 'values' && <Values view={view} />}
        </Suspense>
      </div>
      <ActionDialog request={request} onClose={() => setRequest(null)} onDone={(done) => done.action === 'uninstall' && navigate('/apps')} />
    </Page>
  );
}

/** Say to screen readers when the phase changes. */
function useAnnouncedPhase(view: AppView): void {
  const { apps } = useText();
  const announce = useAnnounce();
  const last = useRef(view.phase);
  useEffect(() => {
    if (last.current === view.phase) return;
    last.current = view.phase;
    announce(apps.phaseChanged(view.name, apps.phases[view.phase] ?? view.phase));
  }, [view.phase, view.name, apps, announce]);
}
