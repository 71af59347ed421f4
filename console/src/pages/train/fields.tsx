/** The frame of a control: label, help, and what is wrong. */
import { Switch } from 'antd';
import { useId, type ReactNode } from 'react';
import { Help } from '../../forms/Field.tsx';

export interface Ids {
  id: string;
  status: 'error' | 'warning' | '';
  'aria-invalid': boolean;
  'aria-describedby': string | undefined;
}

interface FieldProps {
  /** For tests and for the focus on what is wrong. */
  name: string;
  label: string;
  help?: string | undefined;
  problem?: string | undefined;
  warning?: string | undefined;
  note?: ReactNode;
  isRequired?: boolean;
  isWide?: boolean;
  /** Several inputs under one label. */
  isGroup?: boolean;
  children: (ids: Ids) => ReactNode;
}

export function Field({ name, label, help, problem, warning, note, isRequired = false, isWide = false, isGroup = false, children }: FieldProps) {
  const id = useId();
  const words = (
    <>
      {label}
      {isRequired && <b aria-hidden> *</b>}
    </>
  );
  const told = problem ?? warning;
  return (
    <div className={isWide ? 'pf-field pf-wide' : 'pf-field'} data-field={name} data-problem={problem !== undefined} role={isGroup ? 'group' : undefined} aria-labelledby={isGroup ? `${id}-label` : undefined}>
      <div className="pf-label">
        {isGroup ? <span id={`${id}-label`}>{words}</span> : <label htmlFor={id}>{words}</label>}
        {help && <Help text={help} />}
      </div>
      {children({ id, status: problem ? 'error' : warning ? 'warning' : '', 'aria-invalid': problem !== undefined, 'aria-describedby': told ? `${id}-told` : undefined })}
      {note && <div className="pf-note">{note}</div>}
      {told && (
        <div id={`${id}-told`} className={problem ? 'pf-finding pf-error' : 'pf-finding pf-warning'} role={problem ? 'alert' : undefined}>
          {told}
        </div>
      )}
    </div>
  );
}

interface ToggleProps {
  name: string;
  label: string;
  help?: string;
  isOn: boolean;
  set: (isOn: boolean) => void;
  children?: ReactNode;
}

/** A switch, and the fields that it brings. */
export function Toggle({ name, label, help, isOn, set, children }: ToggleProps) {
  const id = useId();
  return (
    <div className="pl-train-toggle" data-field={name}>
      <div className="pl-train-switch">
        <Switch id={id} checked={isOn} onChange={set} />
        <label htmlFor={id}>{label}</label>
        {help && <Help text={help} />}
      </div>
      {isOn && children && <div className="pf-grid pl-train-sub">{children}</div>}
    </div>
  );
}
