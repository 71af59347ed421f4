/** The card "model training": code from Git, data in, results out, curves beside. */
import { DeleteOutlined, PlusOutlined } from '@ant-design/icons';
import { Alert, App, AutoComplete, Button, Input, InputNumber, Radio, Select } from 'antd';
import { useMemo, useRef, useState, type FormEvent } from 'react';
import { asApiError, type ApiError } from '../../app/api.ts';
import { useObjects, useView } from '../../app/hooks.ts';
import { useText, type Words } from '../../app/i18n.tsx';
import { useAnnounce } from '../../app/keys.tsx';
import { navigate, navigateFromHere, pathOf } from '../../app/router.tsx';
import { ClaimDialog } from '../../forms/ClaimDialog.tsx';
import { useNames } from '../../forms/context.tsx';
import { rowsOf } from '../../forms/controls.tsx';
import { Disclosure } from '../../forms/Field.tsx';
import { ErrorNotice, Page, Section } from '../../parts/index.ts';
import { useSettled } from '../create/draft.ts';
import type { OverviewView } from '../overview/machine.ts';
import { claimDetail, keyOf, sourceOf, useBuckets, useClaims } from './data.ts';
import { Field, Toggle } from './fields.tsx';
import { Preview } from './Preview.tsx';
import { createApp, SECRET_EXISTS, type KubeObject } from './submit.ts';
import { renderPath, useRender } from './useRender.ts';
import { EMPTY, FRAMEWORKS, hasServers, MAX_GPUS, MAX_REPLICAS, missingFlag, parameterProblem, problemsOf, TEMPLATE, valuesOf, type Field as FieldName, type Framework, type Problem, type TrainForm } from './values.ts';

const GPU = 'nvidia.com/gpu';

export function sayProblem(problem: Problem, words: Words['apps']['train']['problems']): string {
  switch (problem.code) {
    case 'nameCharsTry':
    case 'gitSshTry':
    case 'logDirAbsolute':
      return words[problem.code](problem.text);
    case 'whole':
      return words.whole(problem.low, problem.high);
    default:
      return words[problem.code];
  }
}

interface FormProps {
  form: TrainForm;
  change: (patch: Partial<TrainForm>) => void;
  /** What a field says about itself, once somebody has been there. */
  problem: (field: FieldName) => string | undefined;
  namespace: string;
}

export function TrainCard({ namespace }: { namespace: string }) {
  const t = useText();
  const words = t.apps.train;
  const { message } = App.useApp();
  const announce = useAnnounce();
  const root = useRef<HTMLFormElement>(null);
  const [form, setForm] = useState<TrainForm>(EMPTY);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [isTried, setTried] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError>();
  const apps = useObjects<KubeObject>(`/apis/paceline.dev/v1beta1/namespaces/${encodeURIComponent(namespace)}/trainingapps`);
  const taken = useMemo(() => (apps.data ?? []).map((app) => app.metadata.name), [apps.data]);
  const settled = useSettled(form, 250);
  const shownProblems = useMemo(() => problemsOf(isTried ? form : settled, taken), [isTried, form, settled, taken]);
  const problems = problemsOf(form, taken);
  const isGood = Object.keys(problems).length === 0;
  const ownSecret = form.isPrivate && form.credential === 'password' ? `${form.name}-git` : undefined;
  const values = valuesOf(form, ownSecret ?? form.secret.trim());
  const state = useRender(renderPath(TEMPLATE), isGood ? { name: form.name, namespace, values } : null);

  const change = (patch: Partial<TrainForm>) => {
    setForm((before) => ({ ...before, ...patch }));
    setTouched((before) => new Set([...before, ...Object.keys(patch)]));
    setRefusal(undefined);
  };
  const problem = (field: FieldName) => {
    const found = touched.has(field) || isTried ? shownProblems[field] : undefined;
    return found && sayProblem(found, words.problems);
  };

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (!isGood) {
      announce(words.mustFix(Object.keys(problems).length));
      const [first] = Object.keys(problems);
      setTimeout(() => root.current?.querySelector<HTMLElement>(`[data-field="${first ?? ''}"] :is(input, textarea)`)?.focus());
      return;
    }
    const { rendered } = state;
    if (rendered === undefined || state.isBusy || rendered.faults.length > 0 || isBusy) return;
    setBusy(true);
    setRefusal(undefined);
    const follow = navigateFromHere();
    try {
      const ownerless = await createApp(rendered, ownSecret === undefined ? null : { secret: ownSecret, user: form.user, password: form.password });
      void message.success(words.created(form.name));
      if (ownerless !== '') void message.warning(words.ownerless(ownerless), 10);
      follow(pathOf('apps', namespace, form.name));
    } catch (failure) {
      setRefusal(asApiError(failure));
      announce(words.refused);
    } finally {
      setBusy(false);
    }
  };

  const isReady = isGood && state.rendered !== undefined && !state.isBusy && state.rendered.faults.length === 0;
  const props: FormProps = { form, change, problem, namespace };
  return (
    <Page name="train" title={words.title} description={words.about}>
      <form ref={root} className="pl-train" noValidate onSubmit={(event) => void submit(event)} data-ready={isReady} autoComplete="off">
        <div className="pl-train-form">
          {refusal && (refusal.reason === SECRET_EXISTS ? <Alert type="error" showIcon role="alert" title={words.secretTaken(ownSecret ?? '')} description={words.secretTakenHint} /> : <ErrorNotice error={refusal} title={words.refused} />)}
          <Section>
            <div className="pl-train-fields">
              <Basics {...props} />
              <Data {...props} />
              <Code {...props} />
              <Monitoring {...props} />
            </div>
          </Section>
          <Disclosure name="more" title={words.more}>
            {() => <More {...props} />}
          </Disclosure>
        </div>
        <div className="pl-train-side">
          <Preview state={state} secret={ownSecret} />
          <div className="pl-train-buttons">
            <Button type="primary" size="large" htmlType="submit" loading={isBusy} disabled={isGood && !isReady} data-action="create">
              {words.create}
            </Button>
            <Button size="large" onClick={() => navigate('/apps')}>
              {words.cancel}
            </Button>
            {isTried && !isGood && <span className="pf-error">{words.mustFix(Object.keys(problems).length)}</span>}
          </div>
        </div>
      </form>
    </Page>
  );
}

function Basics({ form, change, problem, namespace }: FormProps) {
  const { apps } = useText();
  const words = apps.train;
  return (
    <>
      <div className="pf-grid pl-train-pair">
        <Field name="project" label={words.project}>
          {({ id }) => <Input id={id} value={namespace} readOnly variant="filled" />}
        </Field>
        <Field name="name" label={words.name} help={words.nameHelp} problem={problem('name')} isRequired>
          {(ids) => <Input {...ids} value={form.name} placeholder="tf-train-distributed" autoFocus autoComplete="off" spellCheck={false} maxLength={80} onChange={(event) => change({ name: event.target.value.trim() })} />}
        </Field>
      </div>
      <div className="pf-grid pl-train-pair">
        <Field name="framework" label={words.framework}>
          {({ id }) => <Select<Framework> id={id} value={form.framework} options={FRAMEWORKS.map((framework) => ({ value: framework, label: words.frameworks[framework] }))} onChange={(framework) => change({ framework })} />}
        </Field>
        {form.framework === 'image' && (
          <Field name="image" label={words.image} help={words.imageHelp} problem={problem('image')} isRequired>
            {(ids) => <Input {...ids} value={form.image} placeholder="example.org/team/trainer:1" autoComplete="off" spellCheck={false} onChange={(event) => change({ image: event.target.value })} />}
          </Field>
        )}
      </div>
      <Toggle name="distributed" label={words.distributed} help={words.distributedHelp} isOn={form.distributed} set={(distributed) => change({ distributed })}>
        {hasServers(form.framework) ? (
          <Field name="ps" label={words.ps} problem={problem('ps')} isRequired>
            {(ids) => <InputNumber {...ids} value={form.ps} min={0} max={MAX_REPLICAS} precision={0} changeOnWheel={false} onChange={(ps) => change({ ps })} />}
          </Field>
        ) : (
          <Field name="ps" label={words.ps}>
            {({ id }) => <Input id={id} value={words.problems.noServers(words.frameworks[form.framework])} readOnly variant="borderless" />}
          </Field>
        )}
        <Field name="workers" label={words.workers} problem={problem('workers')} isRequired>
          {(ids) => <InputNumber {...ids} value={form.workers} min={1} max={MAX_REPLICAS} precision={0} onChange={(workers) => change({ workers })} />}
        </Field>
      </Toggle>
      <Gpus form={form} change={change} problem={problem} namespace={namespace} />
    </>
  );
}

function Gpus({ form, change, problem }: FormProps) {
  const { apps } = useText();
  const words = apps.train;
  const machine = useView<OverviewView>('overview', {});
  const devices = machine.data?.resources.find(({ resource }) => resource === GPU);
  const total = machine.data === undefined ? undefined : (devices?.allocatable ?? 0);
  const wanted = (form.gpus ?? 0) * (form.distributed ? (form.workers ?? 1) : 1);
  const warning = total === undefined || wanted === 0 ? undefined : total === 0 ? words.noGpus : wanted > total ? words.fewGpus(total, wanted) : undefined;
  return (
    <Field name="gpus" label={words.gpus} help={words.gpusHelp} problem={problem('gpus')} warning={warning} note={devices && words.gpusFree(devices.allocatable - devices.requested, devices.allocatable)}>
      {(ids) => <InputNumber {...ids} value={form.gpus} min={0} max={MAX_GPUS} precision={0} onChange={(gpus) => change({ gpus })} />}
    </Field>
  );
}

function Data({ form, change, namespace }: FormProps) {
  const { apps } = useText();
  const words = apps.train;
  const claims = useClaims(namespace);
  const buckets = useBuckets(namespace);
  const [newName, setNewName] = useState<string | null>(null);
  const options = [
    { value: 'none', label: words.noData },
    ...group(words.claims, (claims ?? []).map((claim) => ({ value: `claim/${claim.metadata.name}`, label: <Option name={claim.metadata.name} detail={claimDetail(claim)} /> }))),
    ...group(words.buckets, buckets.map((bucket) => ({ value: `bucket/${bucket.secret}`, label: <Option name={bucket.secret} detail={bucket.url} /> }))),
  ];
  return (
    <Field name="data" label={words.data} help={words.dataHelp} note={form.data.sort === 'none' ? words.ownClaim : undefined}>
      {({ id }) => (
        <div className="pf-with-button">
          <Select id={id} value={keyOf(form.data)} options={options} loading={claims === undefined} showSearch={{ filterOption: (typed, option) => String((option as { value?: string } | undefined)?.value ?? '').includes(typed) }} onChange={(key: string) => change({ data: sourceOf(key, buckets) })} />
          <Button icon={<PlusOutlined />} onClick={() => setNewName(form.name === '' ? 'data' : `${form.name.slice(0, 50)}-input`)}>
            {words.newClaim}
          </Button>
          <ClaimDialog
            name={newName}
            namespace={namespace}
            onCancel={() => setNewName(null)}
            onDone={(name) => {
              setNewName(null);
              change({ data: { sort: 'claim', name } });
            }}
          />
        </div>
      )}
    </Field>
  );
}

function group<T>(label: string, options: T[]): { label: string; options: T[] }[] {
  return options.length === 0 ? [] : [{ label, options }];
}

function Option({ name, detail }: { name: string; detail: string }) {
  return (
    <span className="pf-option">
      {name}
      <span className="pl-faint">{detail}</span>
    </span>
  );
}

function Code({ form, change, problem, namespace }: FormProps) {
  const { apps } = useText();
  const words = apps.train;
  const flag = missingFlag(form);
  return (
    <>
      <Field name="git" label={words.git} help={words.gitHelp} problem={problem('git')} isRequired isWide>
        {(ids) => <Input {...ids} value={form.git} placeholder="https://example.org/team/code.git" inputMode="url" autoComplete="off" spellCheck={false} onChange={(event) => change({ git: event.target.value })} />}
      </Field>
      <Toggle name="isPrivate" label={words.isPrivate} help={words.privateHelp} isOn={form.isPrivate} set={(isPrivate) => change({ isPrivate })}>
        <PrivateRepository form={form} change={change} problem={problem} namespace={namespace} />
      </Toggle>
      <Field
        name="command"
        label={words.command}
        help={words.commandHelp}
        problem={problem('command')}
        isRequired
        isWide
        note={
          flag !== '' && (
            <Button type="link" size="small" className="pl-train-flag" onClick={() => change({ command: `${form.command.trimEnd()} ${flag}` })}>
              {words.fillLogDir(flag)}
            </Button>
          )
        }
      >
        {(ids) => <Input.TextArea {...ids} className="pl-mono pf-lines" value={form.command} placeholder="python3 train.py --epochs=3" rows={Math.max(rowsOf(form.command), 2)} autoComplete="off" spellCheck={false} onChange={(event) => change({ command: event.target.value })} />}
      </Field>
    </>
  );
}

function PrivateRepository({ form, change, problem, namespace }: FormProps) {
  const { apps } = useText();
  const words = apps.train;
  const secrets = useNames(form.credential === 'secret' ? `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets` : null);
  return (
    <>
      <Field name="credential" label={words.credential} isWide isGroup>
        {() => (
          <Radio.Group
            value={form.credential}
            onChange={(event) => change({ credential: event.target.value as TrainForm['credential'] })}
            options={[
              { value: 'password', label: words.withPassword },
              { value: 'secret', label: words.withSecret },
            ]}
          />
        )}
      </Field>
      {form.credential === 'password' ? (
        <>
          <Field name="user" label={words.user} problem={problem('user')} isRequired>
            {(ids) => <Input {...ids} value={form.user} autoComplete="off" spellCheck={false} onChange={(event) => change({ user: event.target.value })} />}
          </Field>
          <Field name="password" label={words.password} problem={problem('password')} isRequired>
            {(ids) => <Input.Password {...ids} value={form.password} autoComplete="new-password" visibilityToggle={false} onChange={(event) => change({ password: event.target.value })} />}
          </Field>
          <p className="pf-note pf-wide">{words.privateHelp}</p>
        </>
      ) : (
        <Field name="secret" label={words.secret} help={words.secretHelp} problem={problem('secret')} isRequired>
          {(ids) => (
            <AutoComplete
              {...ids}
              value={form.secret}
              options={secrets.map((name) => ({ value: name, label: name }))}
              showSearch={{ filterOption: (typed, option) => String(option?.value ?? '').includes(typed) }}
              onChange={(secret: string | undefined) => change({ secret: secret ?? '' })}
            />
          )}
        </Field>
      )}
    </>
  );
}

function Monitoring({ form, change, problem }: FormProps) {
  const { apps } = useText();
  const words = apps.train;
  return (
    <Toggle name="isMonitored" label={words.monitor} help={words.monitorHelp} isOn={form.isMonitored} set={(isMonitored) => change({ isMonitored })}>
      <Field name="logDir" label={words.logDir} help={words.logDirHelp} problem={problem('logDir')} isRequired isWide>
        {(ids) => <Input {...ids} className="pl-mono" value={form.logDir} placeholder="/output/training_logs" autoComplete="off" spellCheck={false} onChange={(event) => change({ logDir: event.target.value })} />}
      </Field>
    </Toggle>
  );
}

function More({ form, change, problem }: FormProps) {
  const { apps } = useText();
  const words = apps.train;
  const texts = ['cpu', 'memory', 'revision', 'directory'] as const;
  return (
    <div className="pl-train-fields">
      <div className="pf-grid">
        {texts.map((field) => (
          <Field key={field} name={field} label={words[field]} problem={problem(field)}>
            {(ids) => <Input {...ids} value={form[field]} autoComplete="off" spellCheck={false} onChange={(event) => change({ [field]: event.target.value })} />}
          </Field>
        ))}
      </div>
      <Parameters form={form} change={change} />
    </div>
  );
}

function Parameters({ form, change }: Pick<FormProps, 'form' | 'change'>) {
  const { apps } = useText();
  const words = apps.train;
  const { parameters } = form;
  const set = (index: number, patch: Partial<TrainForm['parameters'][number]>) => change({ parameters: parameters.map((entry, place) => (place === index ? { ...entry, ...patch } : entry)) });
  return (
    <Field name="parameters" label={words.parameters} help={words.parametersHelp} isGroup isWide>
      {() => (
        <div className="pf-rows">
          {parameters.map((entry, index) => {
            const found = entry.name === '' && entry.value === '' ? null : parameterProblem(parameters, index);
            return (
              <div key={index} className="pl-train-parameter">
                <div className="pf-row">
                  <Input aria-label={words.parameter} placeholder="lr" value={entry.name} status={found?.code === 'parameterName' ? 'error' : ''} autoComplete="off" spellCheck={false} onChange={(event) => set(index, { name: event.target.value })} />
                  <Input aria-label={words.value} placeholder="0.001" value={entry.value} status={found?.code === 'parameterValue' ? 'error' : ''} autoComplete="off" spellCheck={false} onChange={(event) => set(index, { value: event.target.value })} />
                  <Button type="text" icon={<DeleteOutlined />} aria-label={words.remove(entry.name || words.parameter)} onClick={() => change({ parameters: parameters.filter((_, place) => place !== index) })} />
                </div>
                {found && <div className="pf-finding pf-error">{sayProblem(found, words.problems)}</div>}
              </div>
            );
          })}
          <Button type="dashed" size="small" icon={<PlusOutlined />} onClick={() => change({ parameters: [...parameters, { name: '', value: '' }] })}>
            {words.addParameter}
          </Button>
        </div>
      )}
    </Field>
  );
}
