/** Every field of a kind, from its schema: what the rest of the form does not show has its control here. */
import { CaretRightOutlined, SearchOutlined } from '@ant-design/icons';
import { Button, Checkbox, Input, InputNumber, Select } from 'antd';
import { useId, useMemo, useState, type ReactNode } from 'react';
import { parse as parseYaml } from 'yaml';
import { useText } from '../app/i18n.tsx';
import { findingsAt } from './checks.ts';
import { asText, rowsOf, YesNo } from './controls.tsx';
import { useForm, useValue } from './context.tsx';
import { printBlock, spell, type Path } from './document.ts';
import { Badge, FindingNote } from './Field.tsx';
import { asList, asObject, LateInput, RemoveButton } from './lists.tsx';
import { emptyOf, findFields, resolve, shapeOf, type Schema } from './schema.ts';

type Components = Record<string, Schema>;

interface TreeProps {
  path: Path;
  schema: Schema;
  components: Components;
}

const SMALL = new Set(['text', 'number', 'integer', 'switch', 'choice', 'quantity', 'textOrNumber']);

/** The fields of an object, with a search over all fields below it. */
export function FieldTree({ path, schema, components }: TreeProps) {
  const { create } = useText();
  const [words, setWords] = useState('');
  const [onlySet, setOnlySet] = useState(false);
  const found = useMemo(() => findFields(schema, components, words), [schema, components, words]);
  return (
    <div className="pf-tree">
      <div className="pf-row">
        <Input prefix={<SearchOutlined aria-hidden />} aria-label={create.tree.find} placeholder={create.tree.find} allowClear value={words} onChange={(event) => setWords(event.target.value)} />
        <Checkbox checked={onlySet} onChange={(event) => setOnlySet(event.target.checked)}>
          {create.tree.onlySet}
        </Checkbox>
      </div>
      {words.trim() !== '' ? (
        <>
          <p className="pf-note">{create.tree.found(found.length)}</p>
          {found.map((field) => (
            <FoundField key={field.path.join('.')} path={path} found={field.path} schema={field.schema} components={components} />
          ))}
        </>
      ) : (
        <ObjectFields path={path} schema={schema} components={components} onlySet={onlySet} />
      )}
    </div>
  );
}

/** A field that was found; entries of lists above it are the first ones. */
function FoundField({ path, found, schema, components }: { path: Path; found: readonly string[]; schema: Schema; components: Components }) {
  const { part } = useForm();
  const full: (string | number)[] = [...path];
  found.forEach((name, index) => {
    full.push(name);
    const isLast = index === found.length - 1;
    if (!isLast && (Array.isArray(part.get(full)) || isListName(name))) full.push(0);
  });
  return <Node path={full} schema={schema} components={components} title={spell(full.slice(path.length))} onlySet={false} />;
}

/** Lists that are not written yet are known by their names alone. */
function isListName(name: string): boolean {
  return /^(replicaSpecs|containers|initContainers|volumes|volumeMounts|env|envFrom|ports|tolerations|resumeSpecs|pvc)$/.test(name);
}

function ObjectFields({ path, schema, components, onlySet }: TreeProps & { onlySet: boolean }) {
  const { part } = useForm();
  const resolved = resolve(schema, components);
  const value = asObject(part.get(path));
  const names = Object.keys(resolved.properties ?? {}).sort((left, right) => Number(right in value) - Number(left in value));
  return (
    <>
      {names
        .filter((name) => !onlySet || name in value)
        .map((name) => (
          <Node
            key={name}
            path={[...path, name]}
            schema={resolve(resolved.properties![name]!, components)}
            components={components}
            title={name}
            isRequired={resolved.required?.includes(name) ?? false}
            onlySet={onlySet}
          />
        ))}
    </>
  );
}

interface NodeProps extends TreeProps {
  title: string;
  isRequired?: boolean;
  onlySet: boolean;
  /** How to take it away, for entries of lists and maps. */
  remove?: () => void;
}

function Node(props: NodeProps) {
  const shape = shapeOf(props.schema);
  return SMALL.has(shape) ? <Leaf {...props} /> : <Branch {...props} />;
}

function Leaf({ path, schema, title, isRequired, remove }: NodeProps) {
  const { create } = useText();
  const { value, set, findings } = useValue(path);
  const id = useId();
  const helpId = schema.description ? `${id}-help` : undefined;
  return (
    <div className="pf-leaf" data-path={spell(path)}>
      <label htmlFor={id} className="pl-mono">
        {title}
        {isRequired && <span className="pf-required"> {create.tree.isRequired}</span>}
      </label>
      <LeafInput id={id} describedBy={helpId} schema={schema} value={value} set={set} isRequired={isRequired ?? false} />
      {remove && <RemoveButton label={`${create.control.remove} ${title}`} onClick={remove} />}
      {schema.description && (
        <p id={helpId} className="pf-note" lang="en">
          {schema.description}
        </p>
      )}
      {findings.map((finding, index) => (
        <FindingNote key={index} finding={finding} />
      ))}
    </div>
  );
}

function LeafInput({ id, describedBy, schema, value, set, isRequired }: { id: string; describedBy: string | undefined; schema: Schema; value: unknown; set: (value: unknown) => void; isRequired: boolean }) {
  const { create } = useText();
  const common = { id, 'aria-describedby': describedBy };
  const empty = isRequired ? '' : undefined;
  switch (shapeOf(schema)) {
    case 'switch':
      return <YesNo ids={common} value={value} set={set} />;
    case 'choice':
      return (
        <Select
          {...common}
          allowClear
          placeholder={create.control.unset}
          value={asText(value) === '' ? undefined : asText(value)}
          options={schema.enum!.map((option) => ({ value: option, label: option }))}
          onChange={(next: string | undefined) => set(next)}
        />
      );
    case 'integer':
    case 'number':
      return <InputNumber {...common} placeholder={create.control.unset} value={typeof value === 'number' ? value : null} min={schema.minimum} max={schema.maximum} onChange={(next) => set(next ?? undefined)} />;
    case 'textOrNumber':
      return <Input {...common} placeholder={create.control.unset} value={asText(value)} onChange={(event) => set(event.target.value === '' ? undefined : /^\d{1,9}$/.test(event.target.value) && typeof value !== 'string' ? Number(event.target.value) : event.target.value)} />;
    default:
      return <Input {...common} placeholder={create.control.unset} value={asText(value)} autoComplete="off" spellCheck={false} onChange={(event) => set(event.target.value === '' ? empty : event.target.value)} />;
  }
}

/** How many entries or fields something has. */
function sizeOf(value: unknown): number {
  return value !== null && typeof value === 'object' ? Object.keys(value).length : 0;
}

function Branch({ path, schema, components, title, isRequired, onlySet, remove }: NodeProps) {
  const { create } = useText();
  const form = useForm();
  const value = form.part.get(path);
  const [open, setOpen] = useState(false);
  const findings = findingsAt(form.findings, path);
  return (
    <div className="pf-branch" data-path={spell(path)}>
      <div className="pf-branch-head">
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          <CaretRightOutlined aria-hidden className={open ? 'pf-caret pf-open' : 'pf-caret'} />
          <span className="pl-mono">{title}</span>
          {isRequired && <span className="pf-required">{create.tree.isRequired}</span>}
          {sizeOf(value) > 0 && <span className="pl-faint">{create.tree.set(sizeOf(value))}</span>}
          <Badge findings={findings} />
        </button>
        {value !== undefined && <RemoveButton label={`${create.control.remove} ${title}`} onClick={remove ?? (() => form.write([[path, undefined]]))} />}
      </div>
      {schema.description && (
        <p className="pf-note" lang="en">
          {schema.description}
        </p>
      )}
      {open && (
        <div className="pf-branch-body">
          <BranchBody path={path} schema={schema} components={components} onlySet={onlySet} />
        </div>
      )}
    </div>
  );
}

function BranchBody({ path, schema, components, onlySet }: TreeProps & { onlySet: boolean }): ReactNode {
  switch (shapeOf(schema)) {
    case 'object':
      return <ObjectFields path={path} schema={schema} components={components} onlySet={onlySet} />;
    case 'list':
      return <ListFields path={path} schema={schema} components={components} onlySet={onlySet} />;
    case 'map':
      return <MapFields path={path} schema={schema} components={components} onlySet={onlySet} />;
    default:
      return <FreeField path={path} />;
  }
}

function ListFields({ path, schema, components, onlySet }: TreeProps & { onlySet: boolean }) {
  const { create } = useText();
  const form = useForm();
  const items = asList(form.part.get(path));
  const inner = resolve(schema.items!, components);
  return (
    <>
      {items.map((item, index) => (
        <Node
          key={index}
          path={[...path, index]}
          schema={inner}
          components={components}
          title={asText(asObject(item).name) || asText(asObject(item).type) || create.tree.entry(index + 1)}
          onlySet={onlySet}
          remove={() => form.write([[[...path, index], undefined]])}
        />
      ))}
      <Button size="small" type="dashed" onClick={() => form.write([[[...path, items.length], emptyOf(inner)]])}>
        {create.tree.addEntry}
      </Button>
    </>
  );
}

function MapFields({ path, schema, components, onlySet }: TreeProps & { onlySet: boolean }) {
  const { create } = useText();
  const form = useForm();
  const value = asObject(form.part.get(path));
  const inner = resolve(schema.additionalProperties as Schema, components);
  return (
    <>
      {Object.keys(value).map((name) => (
        <Node key={name} path={[...path, name]} schema={inner} components={components} title={name} onlySet={onlySet} remove={() => form.write([[[...path, name], undefined]])} />
      ))}
      <LateInput label={create.tree.newKey} value="" set={(name) => name !== '' && !(name in value) && form.write([[[...path, name], emptyOf(inner)]])} />
    </>
  );
}

/** An object of which the schema says nothing: a small piece of YAML. */
function FreeField({ path }: { path: Path }) {
  const { create } = useText();
  const form = useForm();
  const value = form.part.get(path);
  const written = value === undefined ? '' : printBlock(value);
  const [text, setText] = useState<string | null>(null);
  const [isBad, setBad] = useState(false);
  const apply = () => {
    try {
      const next: unknown = text === null || text.trim() === '' ? undefined : parseYaml(text);
      form.write([[path, next]]);
      setText(null);
      setBad(false);
    } catch {
      setBad(true);
    }
  };
  return (
    <div className="pf-free">
      <Input.TextArea aria-label={`YAML ${spell(path)}`} className="pl-mono pf-lines" rows={Math.max(rowsOf(text ?? written), 2)} value={text ?? written} spellCheck={false} onChange={(event) => setText(event.target.value)} />
      <Button size="small" disabled={text === null || text === written} onClick={apply}>
        {create.tree.apply}
      </Button>
      {isBad && <span className="pf-warning">{create.tree.badYaml}</span>}
    </div>
  );
}
