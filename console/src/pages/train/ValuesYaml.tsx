/** The values as text, beside the form: what is typed in one appears in the other. */
import { useEffect, useRef, useState } from 'react';
import { useText } from '../../app/i18n.tsx';
import type { Finding } from '../../forms/checks.ts';
import { Editor } from '../create/Editor.tsx';
import type { Tree } from './schema.ts';
import { printValues, readValues, type TextProblem } from './yamlValues.ts';
import '../create/create.css';

interface Props {
  values: Tree;
  onChange: (values: Tree) => void;
  onReadable: (isReadable: boolean) => void;
}

export function ValuesYaml({ values, onChange, onReadable }: Props) {
  const words = useText().apps.upgrade;
  const [text, setText] = useState(() => printValues(values));
  const [problem, setProblem] = useState<TextProblem>();
  // The values that the text means: a change of the form is another object.
  const meant = useRef(values);
  useEffect(() => {
    if (JSON.stringify(values) === JSON.stringify(meant.current)) return;
    meant.current = values;
    setText(printValues(values));
    setProblem(undefined);
    onReadable(true);
  }, [values, onReadable]);
  const type = (next: string) => {
    if (next === text) return;
    setText(next);
    const read = readValues(next);
    setProblem('problem' in read ? read.problem : undefined);
    onReadable(!('problem' in read));
    if ('problem' in read) return;
    meant.current = read.values;
    onChange(read.values);
  };
  const message = problem && (problem.message || words.notMapping);
  return (
    <>
      <div className="pl-values-yaml" data-yaml={problem ? 'fault' : 'values'}>
        <Editor text={text} findings={problem ? [findingOf(problem, words.notMapping)] : NONE} onChange={type} onFix={() => undefined} onSubmit={() => undefined} handle={null} />
      </div>
      {problem && (
        <div className="pf-finding pf-error" role="alert" lang={problem.message === '' ? undefined : 'en'}>
          {message}
        </div>
      )}
    </>
  );
}

const NONE: Finding[] = [];

function findingOf({ message, line, column }: TextProblem, notMapping: string): Finding {
  return { severity: 'error', object: -1, path: '', reason: 'Invalid', message: message || notMapping, span: { line, column, endLine: line, endColumn: column }, fix: null };
}
