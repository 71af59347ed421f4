/** The controls of single values. */
import { PlusOutlined } from '@ant-design/icons';
import { AutoComplete, Button, Input, InputNumber, Select, Tooltip } from 'antd';
import { useEffect, useRef, useState } from 'react';
import { useObjects } from '../app/hooks.ts';
import { useText } from '../app/i18n.tsx';
import { parseQuantity } from '../parts/index.ts';
import { sayMissing } from './checks.ts';
import { useForm, useNames, useValue } from './context.tsx';
import { same, type Path } from './document.ts';
import { Field, type Ids } from './Field.tsx';
import type { Control, FieldWord } from './kinds.ts';
import { LogsControl, PairsControl, PortsControl, RulesControl, ValuesControl } from './lists.tsx';
import { joinWords, splitWords } from './words.ts';

type Of<T extends Control['as']> = Extract<Control, { as: T }>;

export function useFieldWords(label: FieldWord): { label: string; help: string | undefined } {
  const { create } = useText();
  return { label: create.fields[label], help: (create.help as Partial<Record<FieldWord, string>>)[label] };
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

/** The control of a field, as its data says. */
export function ControlOf({ control }: { control: Control }) {
  switch (control.as) {
    case 'number':
      return <NumberControl control={control} />;
    case 'select':
      return <SelectControl control={control} />;
    case 'switch':
      return <SwitchControl control={control} />;
    case 'words':
      return <WordsControl path={control.path} label={control.label} isRequired={control.isRequired} example={control.example} />;
    case 'quantity':
      return <QuantityControl path={control.path} label={control.label} isRequired={control.isRequired} example={control.example} />;
    case 'claim':
      return <ClaimControl control={control} />;
    case 'secret':
      return <SecretControl control={control} />;
    case 'storageClass':
      return <StorageClassControl control={control} />;
    case 'pairs':
      return <PairsControl path={control.path} label={control.label} />;
    case 'values':
      return <ValuesControl path={control.path} label={control.label} />;
    case 'logs':
      return <LogsControl path={control.path} label={control.label} />;
    case 'rules':
      return <RulesControl path={control.path} label={control.label} />;
    case 'ports':
      return <PortsControl path={control.path} label={control.label} />;
    default:
      return <TextControl path={control.path} label={control.label} isRequired={control.isRequired} example={control.example} />;
  }
}

interface Plain {
  path: Path;
  label: FieldWord;
  isRequired?: boolean | undefined;
  example?: string | undefined;
  isWide?: boolean;
}

export function TextControl({ path, label, isRequired, example, isWide = false }: Plain) {
  const { create } = useText();
  const { value, set, findings } = useValue(path);
  const words = useFieldWords(label);
  const shown = isRequired && asText(value) === '' ? sayMissing(findings, path, create.control.required) : findings;
  return (
    <Field {...words} path={path} findings={shown} isRequired={isRequired} isWide={isWide}>
      {(ids) => (
        <Input
          {...ids}
          value={asText(value)}
          placeholder={example}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => set(event.target.value === '' && !isRequired ? undefined : event.target.value)}
        />
      )}
    </Field>
  );
}

function NumberControl({ control }: { control: Of<'number'> }) {
  const { value, set, findings } = useValue(control.path);
  const words = useFieldWords(control.label);
  return (
    <Field {...words} path={control.path} findings={findings} isRequired={control.isRequired}>
      {(ids) => (
        <InputNumber
          {...ids}
          value={typeof value === 'number' ? value : parseQuantity(asText(value)) ?? null}
          min={control.min}
          max={control.max}
          precision={0}
          placeholder={control.example}
          onChange={(next) => set(next ?? undefined)}
        />
      )}
    </Field>
  );
}

function SelectControl({ control }: { control: Of<'select'> }) {
  const { create } = useText();
  const { value, set, findings } = useValue(control.path);
  const words = useFieldWords(control.label);
  return (
    <Field {...words} path={control.path} findings={findings} isRequired={control.isRequired}>
      {(ids) => (
        <Select
          {...ids}
          value={asText(value) === '' ? undefined : asText(value)}
          placeholder={create.control.unset}
          allowClear={control.initial === undefined}
          options={control.options.map((option) => ({ value: option, label: option }))}
          onChange={(next: string | undefined) => set(next ?? undefined)}
        />
      )}
    </Field>
  );
}

function SwitchControl({ control }: { control: Control }) {
  const { value, set, findings } = useValue(control.path);
  const words = useFieldWords(control.label);
  return (
    <Field {...words} path={control.path} findings={findings}>
      {(ids) => <YesNo ids={ids} value={value} set={set} />}
    </Field>
  );
}

/** Yes, no, or left to the default. */
export function YesNo({ ids, value, set }: { ids: Partial<Ids>; value: unknown; set: (value: unknown) => void }) {
  const { create } = useText();
  return (
    <Select
      {...ids}
      value={typeof value === 'boolean' ? String(value) : undefined}
      placeholder={create.control.unset}
      allowClear
      options={[
        { value: 'true', label: create.control.yes },
        { value: 'false', label: create.control.no },
      ]}
      onChange={(next: string | undefined) => set(next === undefined ? undefined : next === 'true')}
    />
  );
}

/** A line that is split into words while it is typed; a quote that is open is waited for. */
export function WordsControl({ path, label, isRequired, example }: Plain) {
  const { create } = useText();
  const { value, set, findings } = useValue(path);
  const words = useFieldWords(label);
  const current = Array.isArray(value) ? value.map(asText) : asText(value) === '' ? [] : splitWords(asText(value)).words;
  const [line, setLine] = useState(() => joinWords(current));
  const written = useRef(current);
  useEffect(() => {
    // Somebody else changed it: the editor, an undo.
    if (same(written.current, current)) return;
    written.current = current;
    setLine(joinWords(current));
  });
  const { words: split, open } = splitWords(line);
  const change = (next: string) => {
    setLine(next);
    const result = splitWords(next);
    if (result.open !== '') return;
    written.current = result.words;
    set(result.words.length === 0 && !isRequired ? undefined : result.words);
  };
  const note = open !== '' ? <span className="pf-warning">{create.control.openQuote(open)}</span> : <Chips words={split} />;
  return (
    <Field {...words} path={path} findings={findings} isRequired={isRequired} isWide note={split.length > 0 || open !== '' ? note : undefined}>
      {(ids) => (
        <Input.TextArea
          {...ids}
          className="pl-mono pf-lines"
          value={line}
          placeholder={example}
          rows={rowsOf(line)}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => change(event.target.value)}
        />
      )}
    </Field>
  );
}

/** Lines that a text takes; browsers that can do it fit the height themselves. */
export function rowsOf(text: string): number {
  return Math.min(text.split('\n').reduce((sum, line) => sum + Math.max(Math.ceil(line.length / 60), 1), 0), 12);
}

function Chips({ words }: { words: readonly string[] }) {
  const { create } = useText();
  const shown = words.slice(0, 12);
  return (
    <span className="pf-chips">
      <span>{create.control.words(words.length)}</span>
      {shown.map((word, index) => (
        <code key={index}>{word.length > 40 ? `${word.slice(0, 40)}…` : word === '' ? "''" : word}</code>
      ))}
      {words.length > shown.length && <span>…</span>}
    </span>
  );
}

/** An amount with a unit. A number in the text stays a number, where that is possible. */
export function QuantityControl({ path, label, isRequired, example }: Plain) {
  const { value, set, findings } = useValue(path);
  const words = useFieldWords(label);
  const change = (next: string) => {
    if (next === '' && !isRequired) set(undefined);
    else set(typeof value === 'number' && /^\d+$/.test(next) ? Number(next) : next);
  };
  return (
    <Field {...words} path={path} findings={findings} isRequired={isRequired}>
      {(ids) => <Input {...ids} value={asText(value)} placeholder={example} autoComplete="off" spellCheck={false} onChange={(event) => change(event.target.value.trim())} />}
    </Field>
  );
}

interface Claim {
  metadata: { name: string };
  spec?: { resources?: { requests?: { storage?: string } } };
}

/** The name of a claim, from those of the project; a new one can be made on the way. */
export function ClaimInput({ ids, value, set, label }: { ids: Partial<Ids>; value: string; set: (name: string) => void; label?: string }) {
  const { create } = useText();
  const form = useForm();
  const claims = useObjects<Claim>(`/api/v1/namespaces/${encodeURIComponent(form.namespace)}/persistentvolumeclaims`);
  const options = (claims.data ?? []).map((claim) => ({
    value: claim.metadata.name,
    label: (
      <span className="pf-option">
        {claim.metadata.name}
        <span className="pl-faint">{claim.spec?.resources?.requests?.storage}</span>
      </span>
    ),
  }));
  return (
    <div className="pf-with-button">
      <AutoComplete
        {...ids}
        aria-label={label}
        value={value}
        options={options}
        showSearch={{ filterOption: (typed, option) => String(option?.value ?? '').includes(typed) || typed === value }}
        notFoundContent={claims.data?.length === 0 ? create.control.noClaims : null}
        onChange={(next: string | undefined) => set(next ?? '')}
      />
      <Tooltip title={create.control.newClaim}>
        <Button icon={<PlusOutlined />} aria-label={create.control.newClaim} onClick={() => form.newClaim(value, set)} />
      </Tooltip>
    </div>
  );
}

function ClaimControl({ control }: { control: Control }) {
  const { value, set, findings } = useValue(control.path);
  const words = useFieldWords(control.label);
  return (
    <Field {...words} path={control.path} findings={findings} isRequired={control.isRequired}>
      {(ids) => <ClaimInput ids={ids} value={asText(value)} set={(name) => set(name === '' && !control.isRequired ? undefined : name)} />}
    </Field>
  );
}

/** The name of a secret or config map; only names are read. */
export function NameInput({ ids, resource, value, set, label }: { ids: Partial<Ids>; resource: 'secrets' | 'configmaps'; value: string; set: (name: string) => void; label?: string }) {
  const { namespace } = useForm();
  const names = useNames(`/api/v1/namespaces/${encodeURIComponent(namespace)}/${resource}`);
  return (
    <AutoComplete
      {...ids}
      aria-label={label}
      value={value}
      placeholder={label}
      options={names.map((name) => ({ value: name, label: name }))}
      showSearch={{ filterOption: (typed, option) => String(option?.value ?? '').includes(typed) || typed === value }}
      onChange={(next: string | undefined) => set(next ?? '')}
    />
  );
}

function SecretControl({ control }: { control: Control }) {
  const { value, set, findings } = useValue(control.path);
  const words = useFieldWords(control.label);
  return (
    <Field {...words} path={control.path} findings={findings}>
      {(ids) => <NameInput ids={ids} resource="secrets" value={asText(value)} set={(name) => set(name === '' ? undefined : name)} />}
    </Field>
  );
}

function StorageClassControl({ control }: { control: Control }) {
  const { create } = useText();
  const { value, set, findings } = useValue(control.path);
  const words = useFieldWords(control.label);
  const names = useNames('/apis/storage.k8s.io/v1/storageclasses');
  return (
    <Field {...words} path={control.path} findings={findings}>
      {(ids) => (
        <Select
          {...ids}
          value={asText(value) === '' ? undefined : asText(value)}
          placeholder={create.control.defaultClass}
          allowClear
          options={names.map((name) => ({ value: name, label: name }))}
          onChange={(next: string | undefined) => set(next ?? undefined)}
        />
      )}
    </Field>
  );
}
