/** A new claim, made on the way. */
import { Input, Modal, Select } from 'antd';
import { useEffect, useState } from 'react';
import { api, asApiError, type ApiError } from '../app/api.ts';
import { useText } from '../app/i18n.tsx';
import { ErrorNotice } from '../parts/index.ts';
import { useNames } from './context.tsx';

interface Props {
  /** The name to begin with; `null` while the dialog is closed. */
  name: string | null;
  namespace: string;
  onDone: (name: string) => void;
  onCancel: () => void;
}

const MODES = ['ReadWriteMany', 'ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteOncePod'];

export function ClaimDialog({ name: initial, namespace, onDone, onCancel }: Props) {
  const { create, common } = useText();
  const [name, setName] = useState('');
  const [size, setSize] = useState('1Gi');
  const [mode, setMode] = useState(MODES[0]!);
  const [storageClass, setStorageClass] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const classes = useNames(initial === null ? null : '/apis/storage.k8s.io/v1/storageclasses');
  useEffect(() => {
    if (initial === null) return;
    setName(initial);
    setError(undefined);
  }, [initial]);
  const make = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await api.post(`/k8s/api/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims?fieldValidation=Strict`, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace },
        spec: { accessModes: [mode], resources: { requests: { storage: size } }, ...(storageClass ? { storageClassName: storageClass } : {}) },
      });
      onDone(name);
    } catch (failure) {
      setError(asApiError(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal open={initial !== null} title={create.claim.title} okText={create.claim.create} cancelText={common.actions.cancel} confirmLoading={isBusy} okButtonProps={{ disabled: name === '' || size === '' }} onOk={() => void make()} onCancel={onCancel} destroyOnHidden>
      <div className="pl-stack">
        <p className="pl-soft">{create.claim.hint}</p>
        <label className="pl-field">
          <span>{create.fields.name}</span>
          <Input value={name} autoFocus autoComplete="off" onChange={(event) => setName(event.target.value)} />
        </label>
        <label className="pl-field">
          <span>{create.fields.size}</span>
          <Input value={size} autoComplete="off" onChange={(event) => setSize(event.target.value)} />
        </label>
        <div className="pl-field">
          <label htmlFor="claim-mode">{create.fields.accessMode}</label>
          <Select id="claim-mode" value={mode} options={MODES.map((value) => ({ value, label: value }))} onChange={setMode} />
        </div>
        <div className="pl-field">
          <label htmlFor="claim-class">{create.fields.storageClass}</label>
          <Select id="claim-class" allowClear value={storageClass} placeholder={create.control.defaultClass} options={classes.map((value) => ({ value, label: value }))} onChange={setStorageClass} />
        </div>
        {error && <ErrorNotice error={error} />}
      </div>
    </Modal>
  );
}
