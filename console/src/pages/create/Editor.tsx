/** The YAML editor: findings are underlined, and a suggestion is one click away. */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view';
import { classHighlighter } from '@lezer/highlight';
import { useEffect, useImperativeHandle, useRef, type Ref } from 'react';
import { nonce } from '../../app/guards.ts';
import { useText } from '../../app/i18n.tsx';
import { offsets, type Finding } from '../../forms/checks.ts';
import { difference } from '../../forms/document.ts';

export interface EditorHandle {
  /** Go to a place in the text. */
  show(finding: Finding): void;
}

interface Props {
  text: string;
  findings: readonly Finding[];
  onChange: (text: string) => void;
  onFix: (finding: Finding) => void;
  onSubmit: () => void;
  handle: Ref<EditorHandle>;
}

export function Editor({ text, findings, onChange, onFix, onSubmit, handle }: Props) {
  const { create } = useText();
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const calls = useRef({ onChange, onSubmit, onFix });
  calls.current = { onChange, onSubmit, onFix };

  useEffect(() => {
    const made = new EditorView({
      parent: host.current!,
      state: EditorState.create({ doc: text, extensions: extensions(create.editor, calls) }),
    });
    view.current = made;
    return () => made.destroy();
    // The label is set once; a change of language opens the page anew.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  useEffect(() => {
    const current = view.current?.state.doc.toString();
    if (current === undefined || current === text) return;
    view.current!.dispatch({ changes: difference(current, text) });
  }, [text]);

  useEffect(() => {
    const current = view.current;
    if (!current) return;
    const shown = current.state.doc.toString();
    const diagnostics = findings.map((finding) => diagnosticOf(finding, shown, create.foot.fix, calls));
    current.dispatch(setDiagnostics(current.state, diagnostics));
  }, [findings, create]);

  useImperativeHandle(handle, () => ({
    show(finding) {
      const current = view.current;
      if (!current) return;
      const [from, to] = offsets(current.state.doc.toString(), finding.span);
      current.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: 'center' }) });
      current.focus();
    },
  }));

  return <div ref={host} className="pc-editor" />;
}

interface Calls {
  current: Pick<Props, 'onChange' | 'onSubmit' | 'onFix'>;
}

function extensions(label: string, calls: Calls) {
  return [
    EditorView.cspNonce.of(nonce),
    lineNumbers(),
    highlightActiveLineGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of('  '),
    bracketMatching(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    search({ top: true }),
    yaml(),
    syntaxHighlighting(classHighlighter),
    lintGutter(),
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0', spellcheck: 'false', translate: 'no' }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) calls.current.onChange(update.state.doc.toString());
    }),
    keymap.of([
      {
        key: 'Mod-Enter',
        run: () => {
          calls.current.onSubmit();
          return true;
        },
      },
      ...defaultKeymap,
      ...historyKeymap,
      ...searchKeymap,
      ...lintKeymap,
    ]),
  ];
}

function diagnosticOf(finding: Finding, text: string, name: (text: string) => string, calls: Calls): Diagnostic {
  const [from, to] = offsets(text, finding.span);
  const { fix } = finding;
  return {
    from,
    to: Math.max(to, from),
    severity: finding.severity,
    message: finding.message,
    ...(fix ? { actions: [{ name: name(fix.text), apply: () => calls.current.onFix(finding) }] } : {}),
  };
}
