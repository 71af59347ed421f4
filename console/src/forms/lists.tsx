/** The controls of lists and maps. */
import { MinusCircleOutlined, PlusOutlined } from '@ant-design/icons';
import { Button, Input, InputNumber, Select } from 'antd';
import { useEffect, useState, type ReactNode } from 'react';
import { useText } from '../app/i18n.tsx';
import { asText, ClaimInput, NameInput, useFieldWords } from './controls.tsx';
import { useForm, useValue } from './context.tsx';
import type { Path } from './document.ts';
import { Field } from './Field.tsx';
import type { FieldWord } from './kinds.ts';
import type { Change } from './pods.ts';

interface Props {
  path: Path;
  label: FieldWord;
}
type Loose = Record<string, unknown>;

export function asObject(value: unknown): Loose {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Loose) : {};
}

export function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Text that is written when the field is left: a name must not change with every letter. */
export function LateInput({ value, set, label, placeholder, isMono = false }: { value: string; set: (text: string) => void; label: string; placeholder?: string; isMono?: boolean }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const commit = () => {
    if (text !== value) set(text);
  };
  return (
    <Input
      aria-label={label}
      value={text}
      placeholder={placeholder ?? label}
      className={isMono ? 'pl-mono' : ''}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => setText(event.target.value)}
      onBlur={commit}
      onPressEnter={commit}
    />
  );
}

export function RemoveButton({ label, onClick }: { label: string; onClick: () => void }) {
  return <Button type="text" size="small" icon={<MinusCircleOutlined />} aria-label={label} onClick={onClick} />;
}

export function AddButton({ children, onClick }: { children: ReactNode; onClick: () => void }) {
  return (
    <Button size="small" type="dashed" icon={<PlusOutlined />} onClick={onClick}>
      {children}
    </Button>
  );
}

/** Names and values; `read` makes the value of what is typed. */
function Pairs({ path, label, read }: Props & { read: (text: string, old: unknown) => unknown }) {
  const { create } = useText();
  const form = useForm();
  const { value, findings } = useValue(path);
  const words = useFieldWords(label);
  const [isAdding, setAdding] = useState(false);
  const entries = Object.entries(asObject(value));
  const rename = (old: string, name: string) => {
    if (name === '' || name in asObject(value)) return;
    form.write([[[...path, old], undefined], [[...path, name], asObject(value)[old]]]);
  };
  return (
    <Field {...words} path={path} findings={findings} isWide isGroup>
      {() => (
        <div className="pf-rows">
          {entries.map(([name, item]) => (
            <div className="pf-row" key={name}>
              <LateInput label={create.control.key} value={name} set={(next) => rename(name, next)} isMono />
              <Input
                aria-label={`${create.control.value} ${name}`}
                value={asText(item)}
                autoComplete="off"
                spellCheck={false}
                onChange={(event) => form.write([[[...path, name], read(event.target.value, item)]])}
              />
              <RemoveButton label={`${create.control.remove} ${name}`} onClick={() => form.write([[[...path, name], undefined]])} />
            </div>
          ))}
          {isAdding ? (
            <div className="pf-row">
              <LateInput
                label={create.control.key}
                value=""
                isMono
                set={(name) => {
                  setAdding(false);
                  if (name !== '' && !(name in asObject(value))) form.write([[[...path, name], '']]);
                }}
              />
              <RemoveButton label={create.control.remove} onClick={() => setAdding(false)} />
            </div>
          ) : (
            <AddButton onClick={() => setAdding(true)}>{create.control.add}</AddButton>
          )}
        </div>
      )}
    </Field>
  );
}

export function PairsControl(props: Props) {
  return <Pairs {...props} read={(text) => text} />;
}

/** Hyperparameters: a number stays a number if every digit survives that. */
export function readNumber(text: string, old: unknown): unknown {
  if (typeof old === 'string' && old !== '') return text;
  if (text === 'true' || text === 'false') return text === 'true';
  return text !== '' && String(Number(text)) === text ? Number(text) : text;
}

export function ValuesControl(props: Props) {
  return <Pairs {...props} read={readNumber} />;
}

const RULE = /^\s*([a-z0-9]([-a-z0-9]*[a-z0-9])?\[\s*\d+(\s*,\s*\d+)*\s*\]\s*)+$/;

/** A rule as people read it: worker[0,1] ps[0]. */
export function ruleText(rule: unknown): string {
  return Object.entries(asObject(rule))
    .map(([type, ranks]) => `${type}[${asList(ranks).map(asText).join(',')}]`)
    .join(' ');
}

/** The rule that a text means; `undefined` if it means none. */
export function readRule(text: string): Record<string, number[]> | undefined {
  if (!RULE.test(text)) return undefined;
  const rule: Record<string, number[]> = {};
  for (const [, type, ranks] of text.matchAll(/([a-z0-9][-a-z0-9]*)\[([^\]]*)\]/g)) rule[type!] = ranks!.split(',').map(Number);
  return rule;
}

export function RulesControl({ path, label }: Props) {
  const { create } = useText();
  const form = useForm();
  const { value, findings } = useValue(path);
  const words = useFieldWords(label);
  const rules = asList(value);
  const [wrong, setWrong] = useState<number | null>(null);
  return (
    <Field {...words} path={path} findings={findings} isRequired isGroup note={wrong === null ? undefined : <span className="pf-warning">{create.control.badRule}</span>}>
      {() => (
        <div className="pf-rows">
          {rules.map((rule, index) => (
            <div className="pf-row" key={index}>
              <LateInput
                label={`${words.label} ${index + 1}`}
                placeholder={create.control.ruleHint}
                value={ruleText(rule)}
                isMono
                set={(text) => {
                  const next = readRule(text);
                  setWrong(next ? null : index);
                  if (next) form.write([[[...path, index], next]]);
                }}
              />
              <RemoveButton label={`${create.control.remove} ${index + 1}`} onClick={() => form.write([[path, rules.filter((_, at) => at !== index)]])} />
            </div>
          ))}
          <AddButton onClick={() => form.write([[[...path, rules.length], { worker: [rules.length] }]])}>{create.control.addRule}</AddButton>
        </div>
      )}
    </Field>
  );
}

export function PortsControl({ path, label }: Props) {
  const { create } = useText();
  const form = useForm();
  const { value, findings } = useValue(path);
  const words = useFieldWords(label);
  const ports = asList(value).map(asObject);
  return (
    <Field {...words} path={path} findings={findings} isGroup>
      {() => (
        <div className="pf-rows">
          {ports.map((port, index) => (
            <div className="pf-row" key={index}>
              <Input aria-label={`${create.control.portName} ${index + 1}`} placeholder={create.control.portName} value={asText(port.name)} onChange={(event) => form.write([[[...path, index, 'name'], event.target.value]])} />
              <InputNumber aria-label={`${create.control.port} ${index + 1}`} min={1} max={65535} value={typeof port.port === 'number' ? port.port : null} onChange={(next) => form.write([[[...path, index, 'port'], next ?? undefined]])} />
              <RemoveButton label={`${create.control.remove} ${index + 1}`} onClick={() => form.write([[[...path, index], undefined]])} />
            </div>
          ))}
          <AddButton onClick={() => form.write([[[...path, ports.length], { name: 'http', port: 8080 }]])}>{create.control.addPort}</AddButton>
        </div>
      )}
    </Field>
  );
}

const CLAIM_LOGS = /^t9k:\/\/pvc\/([^/]*)\/?(.*)$/;

/** Where TensorBoard finds logs: claims with folders, written in either of the two ways. */
export function LogsControl({ path, label }: Props) {
  const { create } = useText();
  const form = useForm();
  const { value, findings } = useValue([...path, 'trainingLogFilesets']);
  const direct = useValue([...path, 'logDir']);
  const words = useFieldWords(label);
  const filesets = asList(value).map(asText);
  const claims = asList(asObject(direct.value).pvc).map(asObject);
  const logDir: Path = [...path, 'logDir', 'pvc'];
  const add = (): Change => (claims.length > 0 ? [[...logDir, claims.length], { name: '', subPath: ['log'] }] : [[...path, 'trainingLogFilesets', filesets.length], 't9k://pvc/']);
  return (
    <Field {...words} path={path} findings={[...findings, ...direct.findings]} isRequired isWide isGroup>
      {() => (
        <div className="pf-rows">
          {filesets.map((uri, index) => {
            const at = [...path, 'trainingLogFilesets', index];
            const match = CLAIM_LOGS.exec(uri);
            const write = (claim: string, folder: string) => form.write([[at, `t9k://pvc/${claim}${folder === '' ? '' : `/${folder}`}`]]);
            return (
              <div className="pf-row" key={index}>
                {match ? (
                  <>
                    <ClaimInput ids={{}} label={`${create.fields.claim} ${index + 1}`} value={match[1]!} set={(claim) => write(claim, match[2]!)} />
                    <Input aria-label={`${create.control.folderIn} ${index + 1}`} placeholder={create.control.folderIn} value={match[2]!} onChange={(event) => write(match[1]!, event.target.value)} />
                  </>
                ) : (
                  <Input aria-label={`${words.label} ${index + 1}`} value={uri} onChange={(event) => form.write([[at, event.target.value]])} />
                )}
                <RemoveButton label={`${create.control.remove} ${index + 1}`} onClick={() => form.write([[at, undefined]])} />
              </div>
            );
          })}
          {claims.map((claim, index) => (
            <div className="pf-row" key={`claim-${index}`}>
              <ClaimInput ids={{}} label={`${create.fields.claim} ${index + 1}`} value={asText(claim.name)} set={(name) => form.write([[[...logDir, index, 'name'], name]])} />
              <Input
                aria-label={`${create.control.folderIn} ${index + 1}`}
                placeholder={create.control.folderIn}
                value={asList(claim.subPath).map(asText).join(', ')}
                onChange={(event) => form.write([[[...logDir, index, 'subPath'], event.target.value === '' ? undefined : event.target.value.split(/,\s*/)]])}
              />
              <RemoveButton label={`${create.control.remove} ${index + 1}`} onClick={() => form.write([[[...logDir, index], undefined]])} />
            </div>
          ))}
          <AddButton onClick={() => form.write([add()])}>{create.control.addLog}</AddButton>
        </div>
      )}
    </Field>
  );
}

type Origin = 'value' | 'secret' | 'configMap' | 'other';
const REFS: Partial<Record<Origin, string>> = { secret: 'secretKeyRef', configMap: 'configMapKeyRef' };

function originOf(variable: Loose): Origin {
  const from = asObject(variable.valueFrom);
  if ('secretKeyRef' in from) return 'secret';
  if ('configMapKeyRef' in from) return 'configMap';
  return 'valueFrom' in variable ? 'other' : 'value';
}

/** Environment variables: a value, or a key of a secret or config map. */
export function EnvControl({ path }: { path: Path }) {
  const { create } = useText();
  const form = useForm();
  const { value, findings } = useValue(path);
  const words = useFieldWords('env');
  const variables = asList(value).map(asObject);
  const move = (index: number, origin: Origin) => {
    const ref = REFS[origin];
    if (ref) form.write([[[...path, index, 'value'], undefined], [[...path, index, 'valueFrom'], { [ref]: { name: '', key: '' } }]]);
    else form.write([[[...path, index, 'valueFrom'], undefined], [[...path, index, 'value'], '']]);
  };
  return (
    <Field {...words} path={path} findings={findings} isWide isGroup>
      {() => (
        <div className="pf-rows">
          {variables.map((variable, index) => {
            const at = [...path, index];
            const origin = originOf(variable);
            const ref = REFS[origin];
            const target = asObject(asObject(variable.valueFrom)[ref ?? '']);
            return (
              <div className="pf-row pf-row-wrap" key={index}>
                <Input className="pl-mono" aria-label={`${create.control.key} ${index + 1}`} placeholder="NAME" value={asText(variable.name)} autoComplete="off" spellCheck={false} onChange={(event) => form.write([[[...at, 'name'], event.target.value]])} />
                <Select
                  aria-label={`${create.control.source} ${index + 1}`}
                  value={origin}
                  onChange={(next: Origin) => move(index, next)}
                  options={[
                    { value: 'value', label: create.control.fromValue },
                    { value: 'secret', label: create.control.fromSecret },
                    { value: 'configMap', label: create.control.fromConfigMap },
                    ...(origin === 'other' ? [{ value: 'other', label: create.control.fromOther }] : []),
                  ]}
                />
                {origin === 'value' && <Input aria-label={`${create.control.value} ${index + 1}`} placeholder={create.control.value} value={asText(variable.value)} autoComplete="off" spellCheck={false} onChange={(event) => form.write([[[...at, 'value'], event.target.value]])} />}
                {ref && (
                  <>
                    <NameInput ids={{}} label={`${create.control.objectName} ${index + 1}`} resource={origin === 'secret' ? 'secrets' : 'configmaps'} value={asText(target.name)} set={(name) => form.write([[[...at, 'valueFrom', ref, 'name'], name]])} />
                    <Input aria-label={`${create.control.objectKey} ${index + 1}`} placeholder={create.control.objectKey} value={asText(target.key)} onChange={(event) => form.write([[[...at, 'valueFrom', ref, 'key'], event.target.value]])} />
                  </>
                )}
                <RemoveButton label={`${create.control.remove} ${asText(variable.name)}`} onClick={() => form.write([[at, undefined]])} />
              </div>
            );
          })}
          <AddButton onClick={() => form.write([[[...path, variables.length], { name: '', value: '' }]])}>{create.control.addEnv}</AddButton>
        </div>
      )}
    </Field>
  );
}
