import { Alert, Tabs } from 'antd';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { ActionDialog, type ActionRequest } from '../../actions/ActionDialog.tsx';
import type { ActionName } from '../../actions/types.ts';
import { useView } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { useAnnounce } from '../../app/keys.tsx';
import { Link, navigate, useRoute } from '../../app/router.tsx';
import { Empty, ErrorNotice, Loading, Page } from '../../parts/index.ts';
import { jobUrl } from '../jobs/cells.tsx';
import { CauseBox } from './CauseBox.tsx';
import { useJobCommands } from './commands.tsx';
import { Events } from './Events.tsx';
import { Heading, HeaderActions } from './Header.tsx';
import { Replicas } from './Replicas.tsx';
import { Summary } from './Summary.tsx';
import { readTab, TABS, type Tab } from './tabs.ts';
import type { JobView } from './view.ts';

const YamlTab = lazy(() => import('./YamlTab.tsx').then((module) => ({ default: module.YamlTab })));
const LogTab = lazy(() => import('./LogTab.tsx').then((module) => ({ default: module.LogTab })));
const CurvesTab = lazy(() => import('./CurvesTab.tsx').then((module) => ({ default: module.CurvesTab })));
const ResourcesTab = lazy(() => import('./ResourcesTab.tsx').then((module) => ({ default: module.ResourcesTab })));
const TerminalTab = lazy(() => import('./TerminalTab.tsx').then((module) => ({ default: module.TerminalTab })));

export default function JobPage() {
  const t = useText();
  const { params } = useRoute();
  const { namespace = '', kind = '', name = '' } = params;
  const { data: view, error, revision } = useView<JobView>('job', { kind, namespace, name });
  if (view === undefined) {
    return (
      <Page name="job" title={name}>
        {error?.code === 404 ? <NotFound /> : error ? <ErrorNotice error={error} /> : <Loading rows={14} />}
      </Page>
    );
  }
  // Another job may come to have the name: its page begins anew.
  return <Job key={view.uid} view={view} revision={revision} isGone={error?.code === 404} error={error} tab={readTab(params.tab)} />;

  function NotFound() {
    return (
      <Empty title={t.job.notFound} hint={t.job.notFoundHint}>
        <Link to="/jobs">{t.job.back}</Link>
      </Empty>
    );
  }
}

interface Props {
  view: JobView;
  revision: string | undefined;
  isGone: boolean;
  error: unknown;
  tab: Tab;
}

function Job({ view, revision, isGone, error, tab }: Props) {
  const t = useText();
  const [request, setRequest] = useState<ActionRequest | null>(null);
  useAnnouncedPhase(view);
  const ask = (action: ActionName) => setRequest({ action, targets: [view], replicas: view.elastic?.expectedReplicas ?? view.desired });
  useJobCommands(view, isGone, ask);
  const isFull = tab === 'logs' || tab === 'terminal';
  const counts: Partial<Record<Tab, number>> = { replicas: view.desired, events: view.eventCount };
  return (
    <Page
      name="job"
      title={view.name}
      revision={revision}
      isFull={isFull}
      heading={<Heading view={view} />}
      actions={isGone ? undefined : <HeaderActions view={view} onAction={ask} />}
    >
      {isGone && <Alert type="warning" showIcon title={t.job.deleted} description={t.job.deletedHint} data-deleted />}
      {!isGone && view.isDeleting && <Alert type="info" showIcon title={t.job.deleting} />}
      {!isGone && error !== undefined && <ErrorNotice error={error} />}
      {tab === 'summary' && view.cause !== null && (
        <div className="pl-live">
          <CauseBox view={view} />
        </div>
      )}
      <Tabs
        className="pl-job-tabs"
        activeKey={tab}
        onChange={(key) => navigate(jobUrl(view, key))}
        items={TABS.map((key) => ({
          key,
          label: (
            <span>
              {t.job.tabs[key]}
              {counts[key] !== undefined && counts[key] > 0 && <span className="pl-tab-count pl-figures">{counts[key]}</span>}
            </span>
          ),
        }))}
      />
      <div className={isFull ? 'pl-job-body pl-job-body-full pl-live' : 'pl-job-body pl-live'} data-tab={tab}>
        <Suspense fallback={<Loading rows={8} />}>
          {tab === 'summary' && <Summary view={view} />}
          {tab === 'replicas' && <Replicas view={view} />}
          {tab === 'logs' && <LogTab view={view} />}
          {tab === 'curves' && <CurvesTab view={view} />}
          {tab === 'resources' && <ResourcesTab view={view} />}
          {tab === 'events' && <Events view={view} />}
          {tab === 'yaml' && <YamlTab view={view} revision={revision} />}
          {tab === 'terminal' && <TerminalTab view={view} />}
        </Suspense>
      </div>
      <ActionDialog request={request} onClose={() => setRequest(null)} onDone={(done) => done.action === 'delete' && navigate('/jobs')} />
    </Page>
  );
}

/** Say to screen readers when the phase changes. */
function useAnnouncedPhase(view: JobView): void {
  const { common, job } = useText();
  const announce = useAnnounce();
  const last = useRef(view.phase);
  useEffect(() => {
    if (last.current === view.phase) return;
    last.current = view.phase;
    const words: Record<string, string> = common.phases;
    announce(job.phaseChanged(view.name, words[view.phase] ?? view.phase));
  }, [view.phase, view.name, common, job, announce]);
}
