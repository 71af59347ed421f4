/** Asks before an action, and says what will happen: to one object in sentences, to many in numbers. */
import { CheckCircleOutlined, ExclamationCircleOutlined } from '@ant-design/icons';
import { Alert, App, Input, InputNumber, Modal, Progress } from 'antd';
import { useEffect, useRef, useState } from 'react';
import { asApiError, type ApiError } from '../app/api.ts';
import { useText } from '../app/i18n.tsx';
import { navigate, pathOf } from '../app/router.tsx';
import { ErrorNotice, Loading } from '../parts/index.ts';
import { removeWatch } from '../watches/store.ts';
import { summarize, type BulkSummary } from './summary.ts';
import { DANGEROUS, doAction, doMany, previewAction, previewMany, type ActionName, type BulkResult, type Preview, type Target } from './types.ts';
import { isKept, sayConsequence, sayRefusal } from './words.ts';

export interface ActionRequest {
  action: ActionName;
  targets: Target[];
  /** Replicas now, for scaling. */
  replicas?: number;
}

interface Props {
  request: ActionRequest | null;
  onClose: () => void;
  /** Called when it is done, with what a copy is called. */
  onDone?: (request: ActionRequest) => void;
}

/** Above this number the number itself must be typed before they are deleted. */
const TYPED_ABOVE = 10;

export function ActionDialog({ request, onClose, onDone }: Props) {
  // The content stays while the dialog fades out.
  const last = useRef<ActionRequest | null>(null);
  if (request !== null) last.current = request;
  const shown = request ?? last.current;
  if (shown === null) return null;
  const Content = shown.targets.length === 1 ? OneDialog : ManyDialog;
  const key = `${shown.action} ${shown.targets.map((target) => `${target.namespace}/${target.kind}/${target.name}`).join(' ')}`;
  return <Content key={key} request={shown} isOpen={request !== null} onClose={onClose} {...(onDone ? { onDone } : {})} />;
}

/** Who deletes a job needs no notification that it ended. */
function forgetWatches({ action, targets }: ActionRequest): void {
  if (action === 'delete') for (const { uid } of targets) if (uid) removeWatch(uid);
}

interface ContentProps {
  request: ActionRequest;
  isOpen: boolean;
  onClose: () => void;
  onDone?: (request: ActionRequest) => void;
}

function OneDialog({ request, isOpen, onClose, onDone }: ContentProps) {
  const t = useText();
  const { message } = App.useApp();
  const { action } = request;
  const target = request.targets[0] as Target;
  const [preview, setPreview] = useState<Preview>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const [isChanged, setChanged] = useState(false);
  const [replicas, setReplicas] = useState(request.replicas ?? 1);
  const [newName, setNewName] = useState('');
  const isApp = target.kind === 'TrainingApp';
  const isCopy = (action === 'rerun' || action === 'debug') && !isApp;
  const choices = { ...(action === 'scale' ? { replicas } : {}), ...(newName === '' ? {} : { newName }) };
  const asked = JSON.stringify(choices);

  useEffect(() => {
    if (!isOpen) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(
      () => {
        previewAction(action, target, JSON.parse(asked) as typeof choices, stop.signal).then(
          (answer) => {
            setPreview(answer);
            setError(undefined);
          },
          (failure: unknown) => {
            if (!stop.signal.aborted) setError(asApiError(failure));
          },
        );
      },
      preview === undefined ? 0 : 200,
    );
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
    // A preview belongs to what was chosen, and is asked for again when the object changed meanwhile.
  }, [isOpen, asked, isChanged]);

  const confirm = async () => {
    setBusy(true);
    setError(undefined);
    try {
      forgetWatches(request);
      const written = await doAction(action, target, choices);
      const name = isCopy ? written.object.name : target.name;
      void message.success(isApp && action === 'rerun' ? t.actions.rerunsApp(name) : t.actions.done[action](name));
      onClose();
      onDone?.(request);
      if (isCopy) navigate(pathOf('jobs', target.namespace, target.kind, name));
    } catch (failure) {
      const fault = asApiError(failure);
      setError(fault);
      if (fault.code === 409) setChanged((now) => !now);
    } finally {
      setBusy(false);
    }
  };

  const refusal = preview?.possible === false ? preview.reason : null;
  const goes = preview?.consequences.filter((consequence) => !isKept(consequence)) ?? [];
  const stays = preview?.consequences.filter(isKept) ?? [];
  const bounds = preview?.consequences.find((consequence) => consequence.code === 'SizeChanges');
  return (
    <Modal
      open={isOpen}
      title={t.actions.questions[action](target.name)}
      okText={t.actions.names[action]}
      cancelText={t.common.actions.cancel}
      okButtonProps={{ danger: DANGEROUS.has(action), disabled: preview === undefined || refusal !== null }}
      confirmLoading={isBusy}
      onOk={() => void confirm()}
      onCancel={onClose}
      destroyOnHidden
    >
      <div className="pl-stack pl-action-dialog" data-action={action} data-ready={preview !== undefined}>
        {action === 'scale' && (
          <label className="pl-field">
            <span>{t.actions.scaleLabel}</span>
            <span className="pl-row">
              <InputNumber autoFocus min={1} max={10_000} value={replicas} onChange={(value) => setReplicas(value ?? 1)} />
              {bounds && <span className="pl-faint">{t.actions.scaleBounds(String(bounds.minReplicas ?? 1), String(bounds.maxReplicas ?? '∞'))}</span>}
            </span>
          </label>
        )}
        {isCopy && (
          <label className="pl-field">
            <span>{t.actions.newName}</span>
            <Input
              value={newName}
              placeholder={String(preview?.consequences.find((consequence) => consequence.code === 'NewJob')?.name ?? '')}
              onChange={(event) => setNewName(event.target.value.trim())}
              autoComplete="off"
            />
          </label>
        )}
        {error && <ErrorNotice error={error} />}
        {error?.code === 409 && preview && <p className="pl-soft">{t.actions.changedMeanwhile}</p>}
        {preview === undefined && !error && <Loading rows={2} />}
        {refusal && refusal.code !== 'SameSize' && <Alert type="warning" showIcon title={sayRefusal(refusal, t)} />}
        {preview?.possible && (
          <>
            <Sentences sentences={goes.map((consequence) => sayConsequence(consequence, t.actions))} />
            <Sentences isKept sentences={stays.map((consequence) => sayConsequence(consequence, t.actions))} />
          </>
        )}
      </div>
    </Modal>
  );
}

export function Sentences({ sentences, isKept: isGood = false }: { sentences: string[]; isKept?: boolean }) {
  if (sentences.length === 0) return null;
  return (
    <ul className={isGood ? 'pl-consequences pl-consequences-kept' : 'pl-consequences'}>
      {sentences.map((sentence) => (
        <li key={sentence}>
          {isGood ? <CheckCircleOutlined aria-hidden /> : <ExclamationCircleOutlined aria-hidden />}
          <span>{sentence}</span>
        </li>
      ))}
    </ul>
  );
}

/** Of more jobs than this, only the first are asked what would happen. */
const SAMPLE = 500;

function ManyDialog({ request, isOpen, onClose, onDone }: ContentProps) {
  const t = useText();
  const { message } = App.useApp();
  const { action, targets } = request;
  const [summary, setSummary] = useState<BulkSummary>();
  const [error, setError] = useState<ApiError>();
  const [failures, setFailures] = useState<BulkResult[]>([]);
  const [done, setDone] = useState<number>();
  const [typed, setTyped] = useState('');
  const mustType = action === 'delete' && targets.length > TYPED_ABOVE;

  useEffect(() => {
    if (!isOpen) return undefined;
    let isCurrent = true;
    previewMany(action, targets.slice(0, SAMPLE)).then(
      (previews) => isCurrent && setSummary(summarize(previews)),
      (failure: unknown) => isCurrent && setError(asApiError(failure)),
    );
    return () => {
      isCurrent = false;
    };
    // The dialog is made anew for other targets.
  }, [isOpen]);

  const confirm = async () => {
    setDone(0);
    setError(undefined);
    try {
      forgetWatches(request);
      const results = await doMany(action, targets, setDone);
      const failed = results.filter((result) => result.error !== undefined && result.error.code !== 409 && result.error.code !== 404);
      const changed = results.filter((result) => result.error === undefined).length;
      void message.success(t.actions.doneMany(changed, targets.length));
      onDone?.(request);
      if (failed.length === 0) onClose();
      else setFailures(failed);
    } catch (failure) {
      setError(asApiError(failure));
    } finally {
      setDone(undefined);
    }
  };

  return (
    <Modal
      open={isOpen}
      title={t.actions.questions[action](t.actions.jobs(targets.length))}
      okText={`${t.actions.names[action]} (${summary?.possible ?? targets.length})`}
      cancelText={t.common.actions.cancel}
      okButtonProps={{
        danger: DANGEROUS.has(action),
        disabled: summary === undefined || summary.possible === 0 || (mustType && typed !== String(targets.length)) || failures.length > 0,
      }}
      confirmLoading={done !== undefined}
      onOk={() => void confirm()}
      onCancel={onClose}
      destroyOnHidden
    >
      <div className="pl-stack pl-action-dialog" data-action={action} data-ready={summary !== undefined}>
        {error && <ErrorNotice error={error} />}
        {summary === undefined && !error && <Loading rows={3} />}
        {summary && <BulkWords action={action} summary={summary} total={Math.min(targets.length, SAMPLE)} isCut={targets.length > SAMPLE} />}
        {done !== undefined && targets.length > SAMPLE && <Progress percent={Math.round((done / targets.length) * 100)} />}
        {failures.length > 0 && (
          <Alert
            type="error"
            showIcon
            title={t.actions.bulk.failed(failures.length)}
            description={
              <ul className="pl-plain-list">
                {failures.slice(0, 20).map((failure) => (
                  <li key={`${failure.namespace}/${failure.name}`}>
                    <strong>{failure.name}</strong>: {failure.error?.message}
                  </li>
                ))}
              </ul>
            }
          />
        )}
        {mustType && (
          <label className="pl-field">
            <span>{t.common.actions.typeToConfirm(String(targets.length))}</span>
            <Input value={typed} onChange={(event) => setTyped(event.target.value.trim())} autoComplete="off" inputMode="numeric" />
          </label>
        )}
      </div>
    </Modal>
  );
}

function BulkWords({ action, summary, total, isCut }: { action: ActionName; summary: BulkSummary; total: number; isCut: boolean }) {
  const t = useText();
  const words = t.actions.bulk;
  const goes = [action === 'delete' ? words.deleted(summary.possible) : words.possible(summary.possible, total)];
  if (summary.running > 0) goes.push(words.running(summary.running, summary.replicas, summary.graceSeconds));
  if (summary.tensorboards > 0) goes.push(words.tensorboards(summary.tensorboards));
  const stays = summary.claims.length > 0 ? [words.files(summary.claims.join(', '))] : [];
  if (summary.possible > 0 && summary.running === 0) stays.unshift(words.nothingRuns);
  const left = summary.refused.reduce((sum, entry) => sum + entry.count, 0);
  return (
    <>
      <Sentences sentences={goes} />
      <Sentences isKept sentences={stays} />
      {left > 0 && (
        <div className="pl-soft">
          {words.leftAlone(left)}
          <ul className="pl-plain-list">
            {summary.refused.map(({ refusal, count }) => (
              <li key={refusal.code}>
                {count} × {sayRefusal(refusal, t)}
              </li>
            ))}
          </ul>
        </div>
      )}
      {isCut && <p className="pl-faint">{words.sampled(total)}</p>}
    </>
  );
}
