/** Asks before an application gets its next revision: shows what changes in its values and its job, and what follows. */
import { Alert, Button, Modal } from 'antd';
import { useEffect, useState } from 'react';
import { Sentences } from '../../actions/ActionDialog.tsx';
import { isKept, sayConsequence } from '../../actions/words.ts';
import { asApiError, type ApiError } from '../../app/api.ts';
import { useText } from '../../app/i18n.tsx';
import { ErrorNotice, Loading } from '../../parts/index.ts';
import { previewUpgrade, upgrade, type AppName, type NextRevision, type Seen, type Upgrade } from './upgrade.ts';
import { valueText } from './valueText.ts';
import type { Change } from './view.ts';
import './app.css';

interface Props {
  app: AppName;
  /** `null` while the dialog is closed. */
  next: NextRevision | null;
  /** The state that the values belong to; of a rollback it is the state that the dialog shows. */
  seen?: Seen;
  onClose: () => void;
  onDone: (revision: number) => void;
  /** Begins again with the current values, after a conflict. */
  onReload?: () => void;
}

export function UpgradeDialog({ app, next, seen, onClose, onDone, onReload }: Props) {
  const t = useText();
  const words = t.apps.upgrade;
  const [preview, setPreview] = useState<Upgrade>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const [conflicts, setConflicts] = useState(0);
  const body = next === null ? null : JSON.stringify(next);

  useEffect(() => {
    if (body === null) return undefined;
    const stop = new AbortController();
    previewUpgrade(app, JSON.parse(body) as NextRevision, stop.signal).then(setPreview, (failure: unknown) => {
      if (!stop.signal.aborted) setError(asApiError(failure));
    });
    return () => stop.abort();
    // Another application is another page.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [body, conflicts]);

  const close = () => {
    setPreview(undefined);
    setError(undefined);
    setConflicts(0);
    onClose();
  };
  const confirm = async () => {
    if (next === null || preview === undefined) return;
    setBusy(true);
    setError(undefined);
    try {
      const { revision } = await upgrade(app, next, seen ?? preview);
      close();
      onDone(revision);
    } catch (failure) {
      const fault = asApiError(failure);
      if (fault.code === 409 && fault.reason === 'Conflict') {
        setPreview(undefined);
        setConflicts(conflicts + 1);
      } else setError(fault);
    } finally {
      setBusy(false);
    }
  };

  const isStale = seen !== undefined && preview !== undefined && (preview.generation !== seen.generation || preview.uid !== seen.uid);
  const consequences = preview?.consequences ?? [];
  const isPossible = preview !== undefined && preview.faults.length === 0 && !preview.isSame && !isStale;
  const target = next !== null && 'revision' in next ? next.revision : null;
  return (
    <Modal
      open={next !== null}
      width={760}
      title={target === null ? words.question(app.name, preview?.revision ?? 0) : words.rollbackQuestion(app.name, target)}
      okText={words.run(preview?.revision ?? 0)}
      cancelText={t.common.actions.cancel}
      okButtonProps={{ danger: consequences.some((consequence) => Boolean(consequence.stops)), disabled: !isPossible, 'data-action': 'upgrade' }}
      confirmLoading={isBusy}
      onOk={() => void confirm()}
      onCancel={close}
      destroyOnHidden
    >
      <div className="pl-stack pl-upgrade" data-upgrade={preview === undefined ? 'loading' : isPossible ? 'ready' : 'refused'}>
        {(conflicts > 0 || isStale) && (
          <Alert
            type="warning"
            showIcon
            role="alert"
            data-conflict
            title={words.conflict(app.name, preview?.askedBy ?? '')}
            description={target === null ? words.conflictValues : words.conflictRollback}
            action={
              target === null &&
              onReload && (
                <Button size="small" onClick={onReload} data-action="reload">
                  {words.reload}
                </Button>
              )
            }
          />
        )}
        {error && <ErrorNotice error={error} />}
        {preview === undefined && !error && <Loading rows={5} />}
        {preview?.isSame && <Alert type="info" showIcon title={words.same} />}
        {preview !== undefined && preview.faults.length > 0 && (
          <Alert type="error" showIcon title={words.faults} description={<ul lang="en">{preview.faults.map((fault) => <li key={`${fault.path} ${fault.message}`}><code>{fault.path}</code> {fault.message}</li>)}</ul>} />
        )}
        {preview !== undefined && !preview.isSame && (
          <>
            {!isStale && <Sentences sentences={consequences.filter((consequence) => !isKept(consequence)).map((consequence) => sayConsequence(consequence, t.actions))} />}
            {!isStale && <Sentences isKept sentences={consequences.filter(isKept).map((consequence) => sayConsequence(consequence, t.actions))} />}
            <Differences name="values" title={words.values} none={words.noValues} changes={preview.changes ?? []} />
            {preview.jobChanges && <Differences name="job" title={words.job} none={words.noJob} changes={preview.jobChanges} />}
          </>
        )}
      </div>
    </Modal>
  );
}

function Differences({ name, title, none, changes }: { name: string; title: string; none: string; changes: readonly Change[] }) {
  const words = useText().apps.upgrade;
  return (
    <section className="pl-diff" data-diff={name}>
      <h3>
        {title} <span className="pl-faint">{changes.length === 0 ? none : words.count(changes.length)}</span>
      </h3>
      <ul translate="no">
        {changes.map((change) => (
          <li key={change.path} data-path={change.path}>
            <code>{change.path}</code>
            <Side value={change.old} />
            <Side value={change.new} isNew />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The old or the new value, with the sign of a line of a diff; nothing if there is none. */
function Side({ value, isNew = false }: { value: unknown; isNew?: boolean }) {
  const text = valueText(value);
  if (text === null) return null;
  const Mark = isNew ? 'ins' : 'del';
  return (
    <Mark>
      <span aria-hidden>{isNew ? '+' : '−'}</span>
      <span>{text === '' ? '""' : text}</span>
    </Mark>
  );
}
