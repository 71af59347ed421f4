/** An application from any template. */
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
import { createApp, type KubeObject } from './submit.ts';
import { sayProblem } from './TrainCard.tsx';
import { renderPath, useRender } from './useRender.ts';
import { nameProblem } from './values.ts';
import { TemplateText } from './ValuesForm.tsx';
import { ValuesPane } from './ValuesPane.tsx';

export function useTemplate(name: string | null): { template: Template | undefined; error: ApiError | undefined; isUnknown: boolean } {
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
  if (template) return <ValuesPage template={template} namespace={namespace} title={title} />;
  return (
    <Page name="train" title={title}>
      {error ? <ErrorNotice error={error} /> : isUnknown ? <Empty title={common.errors.notFound} hint={name} /> : <Loading rows={12} />}
    </Page>
  );
}

interface Props {
  template: Template;
  namespace: string;
  title: string;
}

function ValuesPage({ template, namespace, title }: Props) {
  const { apps } = useText();
  const words = apps.train;
  const { message } = App.useApp();
  const [name, setName] = useState('');
  const [values, setValues] = useState<Tree>({});
  const [isReadable, setReadable] = useState(true);
  const [isTouched, setTouched] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError>();
  const others = useObjects<KubeObject>(`/apis/paceline.dev/v1beta1/namespaces/${encodeURIComponent(namespace)}/trainingapps`);
  const taken = useMemo(() => (others.data ?? []).map((other) => other.metadata.name), [others.data]);
  const problem = nameProblem(name, taken);
  // Without a name yet, the values are checked for any.
  const state = useRender(renderPath(template.name), { name: problem === null ? name : 'app', namespace, values });
  const { rendered } = state;
  const isReady = problem === null && rendered !== undefined && !state.isBusy && rendered.faults.length === 0 && isReadable;

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTouched(true);
    if (!isReady || isBusy || rendered === undefined) return;
    setBusy(true);
    setRefusal(undefined);
    const follow = navigateFromHere();
    try {
      await createApp(rendered, null);
      void message.success(words.created(name));
      follow(pathOf('apps', namespace, name));
    } catch (failure) {
      setRefusal(asApiError(failure));
    } finally {
      setBusy(false);
    }
  };

  const shown = problem === null ? state : { ...state, rendered: state.rendered && state.rendered.faults.length > 0 ? state.rendered : undefined, isBusy: false };
  return (
    <Page name="train" title={title} description={<TemplateText template={template.name} path="" text={template.description} />}>
      <form className="pl-train" noValidate onSubmit={(event) => void submit(event)} data-ready={isReady} autoComplete="off">
        <ValuesPane
          template={template}
          values={values}
          onChange={setValues}
          onReadable={setReadable}
          faults={rendered?.faults ?? []}
          head={
            <>
              {refusal && <ErrorNotice error={refusal} title={words.refused} />}
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
            </>
          }
          side={
            <>
              <Preview state={shown} />
              <div className="pl-train-buttons">
                <Button type="primary" size="large" htmlType="submit" loading={isBusy} disabled={problem === null && !isReady} data-action="create">
                  {words.create}
                </Button>
                <Button size="large" onClick={() => navigate('/apps')}>
                  {words.cancel}
                </Button>
              </div>
            </>
          }
        />
      </form>
    </Page>
  );
}
