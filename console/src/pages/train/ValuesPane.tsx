/** The values of an application as a form and as YAML, side by side. */
import { lazy, Suspense, type ReactNode } from 'react';
import { useText } from '../../app/i18n.tsx';
import { Loading, Section } from '../../parts/index.ts';
import type { Template } from '../create/Starts.tsx';
import type { Tree } from './schema.ts';
import type { Fault } from './submit.ts';
import { ValuesForm } from './ValuesForm.tsx';

const ValuesYaml = lazy(() => import('./ValuesYaml.tsx').then((module) => ({ default: module.ValuesYaml })));

interface Props {
  template: Template;
  values: Tree;
  onChange: (values: Tree) => void;
  /** Called with whether the text can be read. */
  onReadable: (isReadable: boolean) => void;
  faults: readonly Fault[];
  /** Above the form. */
  head: ReactNode;
  /** Below the text: what would be made, and the buttons. */
  side: ReactNode;
}

export function ValuesPane({ template, values, onChange, onReadable, faults, head, side }: Props) {
  const words = useText().apps.upgrade;
  return (
    <>
      <div className="pl-train-form">
        {head}
        <ValuesForm template={template.name} schema={template.schema} defaults={template.defaults} values={values} onChange={onChange} faults={faultsByPath(faults)} />
      </div>
      <div className="pl-train-side pl-train-tall">
        <Section title={words.yaml} hint={words.yamlHint}>
          <Suspense fallback={<Loading rows={6} />}>
            <ValuesYaml values={values} onChange={onChange} onReadable={onReadable} />
          </Suspense>
        </Section>
        {side}
      </div>
    </>
  );
}

/** Faults of single values by their paths in the values. */
export function faultsByPath(faults: readonly Fault[]): Record<string, string> {
  return Object.fromEntries(faults.flatMap((fault) => (fault.path.startsWith('spec.values.') ? [[fault.path.slice('spec.values.'.length), fault.message]] : [])));
}
