/** What the palette can open or do: actions of the page, pages, saved views, and objects by name. */
import { AppstoreOutlined, DashboardOutlined, DatabaseOutlined, DiffOutlined, ExperimentOutlined, FileTextOutlined, InfoCircleOutlined, LineChartOutlined, PlusOutlined, QuestionOutlined, RightOutlined, SettingOutlined, UnorderedListOutlined } from '@ant-design/icons';
import { useMemo, type ReactNode } from 'react';
import { useObjects, useRows } from '../app/hooks.ts';
import { useText, type Words } from '../app/i18n.tsx';
import { openHelp } from '../app/HelpDialog.tsx';
import { usePageCommands } from '../app/pageCommands.ts';
import { navigate, pathOf } from '../app/router.tsx';
import type { Row } from '../app/rows.ts';
import { useNamespace } from '../app/session.tsx';
import { listPath, type Service } from '../interactive/service.ts';
import { listPath as appsPath, type TrainingApp } from '../pages/apps/list.ts';
import { appUrl } from '../pages/app/tabs.ts';
import { jobUrl, shortKind } from '../pages/jobs/cells.tsx';
import { sortRows } from '../pages/jobs/filter.ts';
import { useSavedViews, viewUrl } from '../pages/jobs/savedViews.ts';
import { StatusIcon, toneOf } from '../parts/StatusTag.tsx';
import { best, withoutLogWord, wordsOf } from './search.ts';

export type Group = keyof Words['palette']['groups'];

export interface Entry {
  id: string;
  label: string;
  /** Others wrote the label: it is shown as it is. */
  isName: boolean;
  detail: string;
  icon: ReactNode;
  run: () => void;
}

export interface Found {
  groups: { group: Group; entries: Entry[] }[];
  /** Some of the lists have not come yet. */
  isLoading: boolean;
}

/** As many of a group are shown, before and after something is typed. */
const FEW = 5;
const MANY = 8;

export function useEntries(query: string): Found {
  const t = useText();
  const words = wordsOf(query);
  const most = words.length === 0 ? FEW : MANY;
  const actions = usePageCommands().map(({ icon, ...command }) => ({ ...command, isName: false, detail: '', icon: icon ?? <RightOutlined /> }));
  const pages = usePages();
  const [views] = useSavedViews();
  const objects = useNamed();
  const find = (entries: readonly Entry[], count = most) => best(entries, words, (entry) => `${entry.label} ${entry.detail}`, count);
  const logWords = withoutLogWord(words, ['log', 'logs', t.actions.logs]);
  const logs = logWords === null ? [] : best(objects.rows, logWords, (row) => row.name, MANY).map((row) => ({ ...jobEntry(row, objects.isAll), id: `logs ${row.uid}`, label: t.palette.logsOf(row.name), run: () => navigate(jobUrl(row, 'logs')) }));
  const groups: Found['groups'] = [
    { group: 'actions', entries: find(actions, 30) },
    { group: 'jobs', entries: [...logs, ...best(objects.rows, words, (row) => row.name, most).map((row) => jobEntry(row, objects.isAll))] },
    { group: 'apps', entries: words.length === 0 ? [] : find(objects.apps) },
    { group: 'notebooks', entries: words.length === 0 ? [] : find(objects.notebooks) },
    { group: 'tensorboards', entries: words.length === 0 ? [] : find(objects.tensorboards) },
    { group: 'views', entries: find(views.map((view) => ({ id: `view ${view.name}`, label: view.name, isName: true, detail: '', icon: <UnorderedListOutlined />, run: () => navigate(viewUrl(view)) }))) },
    // People type paths too, whatever their language.
    { group: 'pages', entries: best(pages, words, (entry) => `${entry.label} ${entry.id}`, 30) },
  ];
  return { groups: groups.filter(({ entries }) => entries.length > 0), isLoading: objects.isLoading };
}

function usePages(): Entry[] {
  const { common, jobs } = useText();
  const { nav } = common;
  const page = (to: string, label: string, icon: ReactNode): Entry => ({ id: to, label, isName: false, detail: '', icon, run: () => navigate(to) });
  return [
    page('/', nav.overview, <DashboardOutlined />),
    page('/jobs', nav.jobs, <UnorderedListOutlined />),
    page('/apps', nav.apps, <AppstoreOutlined />),
    page('/compare', nav.compare, <DiffOutlined />),
    page('/history', nav.history, <FileTextOutlined />),
    page('/notebooks', nav.notebooks, <ExperimentOutlined />),
    page('/tensorboards', nav.tensorboards, <LineChartOutlined />),
    page('/volumes', nav.volumes, <DatabaseOutlined />),
    page('/settings', nav.settings, <SettingOutlined />),
    page('/about', nav.about, <InfoCircleOutlined />),
    page('/create', jobs.create, <PlusOutlined />),
    page('/train', jobs.train, <PlusOutlined />),
    { id: 'help', label: common.bar.help, isName: false, detail: '', icon: <QuestionOutlined />, run: openHelp },
  ];
}

function jobEntry(row: Row, isAll: boolean): Entry {
  const detail = isAll ? `${row.namespace} · ${shortKind(row.kind)}` : shortKind(row.kind);
  return { id: row.uid, label: row.name, isName: true, detail, icon: <StatusIcon tone={toneOf(row.phase)} />, run: () => navigate(jobUrl(row)) };
}

interface Named {
  metadata: { name: string; namespace: string; uid: string };
}

/** The objects of the project that can be opened by name. */
function useNamed() {
  const [namespace] = useNamespace();
  const isAll = namespace === '';
  const jobs = useRows(namespace);
  const apps = useObjects<TrainingApp>(appsPath(namespace));
  const notebooks = useObjects<Service>(listPath('Notebook', namespace));
  const tensorboards = useObjects<Service>(listPath('TensorBoard', namespace));
  const entries = (objects: readonly Named[] | undefined, icon: ReactNode, url: (object: Named['metadata']) => string): Entry[] =>
    (objects ?? []).map(({ metadata }) => ({ id: metadata.uid, label: metadata.name, isName: true, detail: isAll ? metadata.namespace : '', icon, run: () => navigate(url(metadata)) }));
  return {
    isAll,
    isLoading: [jobs, apps, notebooks, tensorboards].some(({ data, error }) => data === undefined && error === undefined),
    rows: useMemo(() => sortRows(jobs.data ?? [], '-created'), [jobs.data]),
    apps: entries(apps.data, <AppstoreOutlined />, (metadata) => appUrl(metadata)),
    notebooks: entries(notebooks.data, <ExperimentOutlined />, ({ namespace: place, name }) => pathOf('notebooks', place, name)),
    tensorboards: entries(tensorboards.data, <LineChartOutlined />, ({ namespace: place, name }) => pathOf('tensorboards', place, name)),
  };
}
