/** An application from any template; and the next revision of one that exists. */
import { App, Button, Input } from 'antd';
import { useMemo, useState, type FormEvent } from 'react';
import { asApiError, type ApiError } from '../../app/api.ts';
import { useObjects } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { navigate, navigateFromHere, pathOf } from '../../app/router.tsx';
import { Empty, ErrorNotice, Loading, Page, Section } from '../../parts/index.ts';
import { useGet, type Template } from '../create/Starts.tsx';
import { Field } from './fields.tsx';
import { Preview } from './Preview.tsx';
import type { Tree } from './schema.ts';
import { appsPath, changeValues, createApp, type Fault, type KubeObject } from './submit.ts';
import { sayProblem } from './TrainCard.tsx';
import { useRender } from './useRender.ts';
import { nameProblem } from './values.ts';
import { ValuesForm } from './ValuesForm.tsx';

function useTemplate(name: string | null): { template: Template | undefined; error: ApiError | undefined; isUnknown: boolean } {
  const { data, error } = useGet<{ templates: Template[] }>(name === null ? null : '/api/templates');
  const template = data?.templates.find((candidate) => candidate.name === name);
  return { template, error, isUnknown: data !== undefined && template === undefined };
}

/** The title of a template in the person's language. */
export function useTemplateTitle(name: string): string {
  const { apps } = useText();
  return apps.templates[name]?.[0] ?? name;
}

export function TemplatePage({ name, namespace }: { name: string; namespace: string }) {
  const { apps, common } = useText();
  const { template, error, isUnknown } = useTemplate(name);
  const title = apps.train.titleOf(useTemplateTitle(name));
  if (template) return <ValuesPage template={template} namespace={namespace} app={null} title={title} />;
  return (
    <Page name="train" title={title}>
      {error ? <ErrorNotice error={error} /> : isUnknown ? <Empty title={common.errors.notFound} hint={name} /> : <Loading rows={12} />}
    </Page>
  );
}

/** The values of an application that exists, `NAMESPACE/NAME`. */
export function ChangePage({ app: place }: { app: string }) {
  const { apps } = useText();
  const [namespace = '', name = ''] = place.split('/');
  const { data: app, error } = useGet<KubeObject>(appsPath(namespace, name));
  const wanted = (app?.spec?.template as { name?: string } | undefined)?.name;
  const { template, error: second, isUnknown } = useTemplate(wanted ?? null);
  const title = apps.train.titleChange(name);
  if (app && template) return <ValuesPage template={template} namespace={namespace} app={app} title={title} />;
  const fault = error ?? second;
  return (
    <Page name="train" title={title}>
      {fault ? <ErrorNotice error={fault} /> : app && (wanted === undefined || isUnknown) ? <Empty title={apps.values.none} hint={apps.values.noneHint} /> : <Loading rows={12} />}
    </Page>
  );
}

/** Faults of single values by their paths in the values. */
export function faultsByPath(faults: readonly Fault[]): Record<string, string> {
  return Object.fromEntries(faults.flatMap((fault) => (fault.path.startsWith('spec.values.') ? [[fault.path.slice('spec.values.'.length), fault.message]] : [])));
}

interface Props {
  template: Template;
  namespace: string;
  /** The application to change; `null` for a new one. */
  app: KubeObject | null;
  title: string;
}

function ValuesPage({ template, namespace, app, title }: Props) {
  const { apps } = useText();
  const words = apps.train;
  const { message } = App.useApp();
  const [name, setName] = useState(app?.metadata.name ?? '');
  const [values, setValues] = useState<Tree>((app?.spec?.values as Tree | undefined) ?? {});
  const [isTouched, setTouched] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError>();
  const others = useObjects<KubeObject>(`/apis/paceline.dev/v1beta1/namespaces/${encodeURIComponent(namespace)}/trainingapps`);
  const taken = useMemo(() => (app ? [] : (others.data ?? []).map((other) => other.metadata.name)), [app, others.data]);
  const problem = nameProblem(name, taken);
  // Without a name yet, the values are checked for any.
  const state = useRender(template.name, { name: problem === null ? name : 'app', namespace, values });
  const { rendered } = state;
  const isReady = problem === null && rendered !== undefined && !state.isBusy && rendered.faults.length === 0 && (app === null || (rendered.changes ?? []).length > 0);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTouched(true);
    if (!isReady || isBusy || rendered === undefined) return;
    setBusy(true);
    setRefusal(undefined);
    const follow = navigateFromHere();
    try {
      if (app) await changeValues(app, values);
      else await createApp(rendered, null);
      void message.success(app ? words.changed(name, rendered.revision) : words.created(name));
      follow(pathOf('apps', namespace, name));
    } catch (failure) {
      setRefusal(asApiError(failure));
    } finally {
      setBusy(false);
    }
  };

  return (
    <Page name="train" title={title} description={app ? undefined : <span lang="en">{template.description}</span>}>
      <form className="pl-train" noValidate onSubmit={(event) => void submit(event)} data-ready={isReady} autoComplete="off">
        <div className="pl-train-form">
          {refusal && <ErrorNotice error={refusal} {...(app ? {} : { title: words.refused })} />}
          {app === null && (
            <Section>
              <Field name="name" label={words.name} help={words.nameHelp} problem={isTouched && problem ? sayProblem(problem, words.problems) : undefined} isRequired>
                {(ids) => (
                  <Input
                    {...ids}
                    value={name}
                    placeholder="mnist"
                    autoFocus
                    autoComplete="off"
                    spellCheck={false}
                    onChange={(event) => {
                      setName(event.target.value.trim());
                      setTouched(true);
                    }}
                  />
                )}
              </Field>
            </Section>
          )}
          <ValuesForm schema={template.schema} defaults={template.defaults} values={values} onChange={setValues} faults={faultsByPath(rendered?.faults ?? [])} />
        </div>
        <div className="pl-train-side">
          <Preview state={problem === null ? state : { ...state, rendered: state.rendered && state.rendered.faults.length > 0 ? state.rendered : undefined, isBusy: false }} />
          <div className="pl-train-buttons">
            <Button type="primary" size="large" htmlType="submit" loading={isBusy} disabled={problem === null && !isReady} data-action="create">
              {app ? words.change : words.create}
            </Button>
            <Button size="large" onClick={() => navigate(app ? pathOf('apps', namespace, name) : '/apps')}>
              {words.cancel}
            </Button>
          </div>
        </div>
      </form>
    </Page>
  );
}
