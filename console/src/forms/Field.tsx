/** The frame of a control: label, help, and what is wrong; and panels that open and close. */
import { CaretRightOutlined, InfoCircleOutlined } from '@ant-design/icons';
import { Button, Switch, Tooltip } from 'antd';
import { useId, useState, type ReactNode } from 'react';
import { useText } from '../app/i18n.tsx';
import { worst, type Finding } from './checks.ts';
import { useForm } from './context.tsx';
import { spell, type Path } from './document.ts';

export interface Ids {
  id: string;
  status: 'error' | 'warning' | '';
  'aria-describedby': string | undefined;
  'aria-required': boolean | undefined;
}

interface FieldProps {
  label: string;
  help?: string | undefined;
  path?: Path;
  findings?: readonly Finding[];
  isRequired?: boolean | undefined;
  isWide?: boolean;
  note?: ReactNode;
  /** Several inputs under one label. */
  isGroup?: boolean;
  children: (ids: Ids) => ReactNode;
}

export function Field({ label, help, path, findings = [], isRequired = false, isWide = false, note, isGroup = false, children }: FieldProps) {
  const id = useId();
  const finding = worst(findings);
  const describedBy = finding ? `${id}-finding` : undefined;
  const status = finding ? finding.severity : '';
  const mark = isRequired ? 'pf-must' : '';
  return (
    <div className={isWide ? 'pf-field pf-wide' : 'pf-field'} data-path={path && spell(path)} role={isGroup ? 'group' : undefined} aria-labelledby={isGroup ? `${id}-label` : undefined}>
      <div className="pf-label">
        {isGroup ? (
          <span id={`${id}-label`} className={mark}>
            {label}
          </span>
        ) : (
          <label htmlFor={id} className={mark}>
            {label}
          </label>
        )}
        {help && <Help text={help} />}
      </div>
      {children({ id, status, 'aria-describedby': describedBy, 'aria-required': isRequired || undefined })}
      {note && <div className="pf-note">{note}</div>}
      {finding && <FindingNote id={`${id}-finding`} finding={finding} />}
    </div>
  );
}

export function Help({ text }: { text: string }) {
  return (
    <Tooltip title={text} trigger={['hover', 'focus', 'click']}>
      <button type="button" className="pf-help" aria-label={text}>
        <InfoCircleOutlined aria-hidden />
      </button>
    </Tooltip>
  );
}

export function FindingNote({ id, finding }: { id?: string; finding: Finding }) {
  const { create } = useText();
  const form = useForm();
  return (
    <div id={id} className={`pf-finding pf-${finding.severity}`}>
      <span translate="no">{finding.message}</span>
      {finding.fix && (
        <Button size="small" type="link" onClick={() => form.fix(finding)}>
          {create.foot.fix(finding.fix.text)}
        </Button>
      )}
    </div>
  );
}

/** How many findings something has, in the colour of the worst. */
export function Badge({ findings }: { findings: readonly Finding[] }) {
  const { create } = useText();
  const finding = worst(findings);
  if (!finding) return null;
  const count = findings.filter(({ severity }) => severity === finding.severity).length;
  const text = finding.severity === 'error' ? create.foot.faults(count) : create.foot.warnings(count);
  return <span className={`pf-badge pf-${finding.severity}`}>{text}</span>;
}

interface DisclosureProps {
  title: ReactNode;
  findings?: readonly Finding[];
  extra?: ReactNode;
  isOpen?: boolean;
  /** For tests and for links from faults. */
  name: string;
  children: () => ReactNode;
}

/** A panel that opens; what is inside is made when it opens. */
export function Disclosure({ title, findings = [], extra, isOpen = false, name, children }: DisclosureProps) {
  const [open, setOpen] = useState(isOpen);
  const id = useId();
  return (
    <section className="pf-panel" data-panel={name}>
      <div className="pf-panel-head">
        <h2>
          <button type="button" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
            <CaretRightOutlined aria-hidden className={open ? 'pf-caret pf-open' : 'pf-caret'} />
            {title}
            <Badge findings={findings} />
          </button>
        </h2>
        {extra}
      </div>
      <div id={id} className="pf-panel-body" hidden={!open}>
        {open && children()}
      </div>
    </section>
  );
}

interface BoxProps {
  title: string;
  help?: string | undefined;
  findings?: readonly Finding[];
  toggle?: { isOn: boolean; set: (isOn: boolean) => void };
  extra?: ReactNode;
  name: string;
  /** Without a toggle the box opens and closes. */
  isOpen?: boolean;
  children?: ReactNode;
}

/** A box inside a panel: with a switch that adds and removes it, or one that opens. */
export function Box({ title, help, findings = [], toggle, extra, name, isOpen = false, children }: BoxProps) {
  const id = useId();
  const [open, setOpen] = useState(isOpen);
  const shows = toggle ? toggle.isOn : open;
  return (
    <div className="pf-box" data-group={name}>
      <div className="pf-box-head">
        {toggle ? (
          <>
            <Switch id={id} size="small" checked={toggle.isOn} onChange={toggle.set} />
            <label htmlFor={id}>{title}</label>
          </>
        ) : (
          <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
            <CaretRightOutlined aria-hidden className={open ? 'pf-caret pf-open' : 'pf-caret'} />
            {title}
          </button>
        )}
        {help && <Help text={help} />}
        <Badge findings={findings} />
        {extra}
      </div>
      {shows && children && <div className="pf-grid pf-box-body">{children}</div>}
    </div>
  );
}
