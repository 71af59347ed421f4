/** Other values for an application that exists: they are reviewed, and then run as its next revision. */
import { App, Button } from 'antd';
import { lazy, Suspense, useState, type FormEvent } from 'react';
import { useText } from '../../app/i18n.tsx';
import { navigate, pathOf } from '../../app/router.tsx';
import { Empty, ErrorNotice, Loading, Page } from '../../parts/index.ts';
import { previewPath, type NextRevision, type Seen, type Upgrade } from '../app/upgrade.ts';
import { useGet, type Template } from '../create/Starts.tsx';
import { Preview } from './Preview.tsx';
import type { Tree } from './schema.ts';
import { appsPath, type KubeObject } from './submit.ts';
import { useTemplate } from './TemplatePage.tsx';
import { useRender } from './useRender.ts';
import { ValuesPane } from './ValuesPane.tsx';

const UpgradeDialog = lazy(() => import('../app/UpgradeDialog.tsx').then((module) => ({ default: module.UpgradeDialog })));

/** The values of an application, `NAMESPACE/NAME`. */
export function ChangePage({ app: place }: { app: string }) {
  const [round, setRound] = useState(0);
  const [namespace = '', name = ''] = place.split('/');
  return <Current key={round} namespace={namespace} name={name} onReload={() => setRound(round + 1)} />;
}

function Current({ namespace, name, onReload }: { namespace: string; name: string; onReload: () => void }) {
  const { apps } = useText();
  const { data: app, error } = useGet<KubeObject>(appsPath(namespace, name));
  const wanted = (app?.spec?.template as { name?: string } | undefined)?.name;
  const { template, error: second, isUnknown } = useTemplate(wanted ?? null);
  const title = apps.train.titleChange(name);
  if (app && template) return <ChangeForm template={template} app={app} namespace={namespace} title={title} onReload={onReload} />;
  const fault = error ?? second;
  return (
    <Page name="train" title={title}>
      {fault ? <ErrorNotice error={fault} /> : app && (wanted === undefined || isUnknown) ? <Empty title={apps.values.none} hint={apps.values.noneHint} /> : <Loading rows={12} />}
    </Page>
  );
}

interface Props {
  template: Template;
  app: KubeObject;
  namespace: string;
  title: string;
  onReload: () => void;
}

function ChangeForm({ template, app, namespace, title, onReload }: Props) {
  const { apps } = useText();
  const words = apps.train;
  const { message } = App.useApp();
  const { name } = app.metadata;
  const [values, setValues] = useState<Tree>((app.spec?.values as Tree | undefined) ?? {});
  const [isReadable, setReadable] = useState(true);
  const [next, setNext] = useState<NextRevision | null>(null);
  const seen: Seen = { uid: app.metadata.uid ?? '', generation: app.metadata.generation ?? 0 };
  const state = useRender<Upgrade>(previewPath({ namespace, name }), { values });
  const { rendered } = state;
  const isReady = rendered !== undefined && !state.isBusy && rendered.faults.length === 0 && (rendered.changes ?? []).length > 0 && isReadable;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) setNext({ values });
  };
  const done = (revision: number) => {
    void message.success(words.changed(name, revision));
    navigate(pathOf('apps', namespace, name));
  };
  return (
    <Page name="train" title={title}>
      <form className="pl-train" noValidate onSubmit={submit} data-ready={isReady} autoComplete="off">
        <ValuesPane
          template={template}
          values={values}
          onChange={setValues}
          onReadable={setReadable}
          faults={rendered?.faults ?? []}
          head={null}
          side={
            <>
              <Preview state={state} />
              <div className="pl-train-buttons">
                <Button type="primary" size="large" htmlType="submit" disabled={!isReady} data-action="create">
                  {words.change}
                </Button>
                <Button size="large" onClick={() => navigate(pathOf('apps', namespace, name))}>
                  {words.cancel}
                </Button>
              </div>
            </>
          }
        />
      </form>
      {next !== null && (
        <Suspense>
          <UpgradeDialog app={{ namespace, name }} next={next} seen={seen} onClose={() => setNext(null)} onDone={done} onReload={onReload} />
        </Suspense>
      )}
    </Page>
  );
}
