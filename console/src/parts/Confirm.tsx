import { Input, Modal } from 'antd';
import { useEffect, useState, type ReactNode } from 'react';
import { asApiError, type ApiError } from '../app/api.ts';
import { useText } from '../app/i18n.tsx';
import { ErrorNotice } from './ErrorNotice.tsx';

interface Props {
  open: boolean;
  title: string;
  /** The button's word, a verb: "Delete", "Pause". */
  action: string;
  isDangerous?: boolean;
  /** Text that must be typed first. */
  typed?: string;
  children?: ReactNode;
  /** May return a promise: the dialog waits, and shows the error of one that fails. */
  onConfirm: () => void | Promise<unknown>;
  onCancel: () => void;
}

/** Asks before something is done, and says what will happen. */
export function Confirm({ open, title, action, isDangerous = false, typed, children, onConfirm, onCancel }: Props) {
  const { common } = useText();
  const [text, setText] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    if (!open) return;
    setText('');
    setError(undefined);
  }, [open]);
  const confirm = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
    } catch (failure) {
      setError(asApiError(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal
      open={open}
      title={title}
      okText={action}
      cancelText={common.actions.cancel}
      okButtonProps={{ danger: isDangerous, disabled: typed !== undefined && text !== typed }}
      confirmLoading={isBusy}
      onOk={() => void confirm()}
      onCancel={onCancel}
      destroyOnHidden
    >
      <div className="pl-stack">
        {children}
        {typed !== undefined && (
          <label className="pl-field">
            <span>{common.actions.typeToConfirm(typed)}</span>
            <Input value={text} onChange={(event) => setText(event.target.value)} autoComplete="off" />
          </label>
        )}
        {error && <ErrorNotice error={error} />}
      </div>
    </Modal>
  );
}
