/** A read-only editor for YAML. The place that is looked at stays while the text changes. */
import { yaml } from '@codemirror/lang-yaml';
import { foldGutter, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'react';
import { nonce } from '../../app/guards.ts';

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--pl-brand)' },
  { tag: [tags.string, tags.content], color: 'var(--pl-ink)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--pl-paused-text)' },
  { tag: tags.comment, color: 'var(--pl-ink-faint)' },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: 'var(--pl-ink-faint)' },
]);

const LOOK = EditorView.theme({
  '&': { color: 'var(--pl-ink)', backgroundColor: 'var(--pl-surface)', fontSize: '12.5px' },
  '.cm-content': { fontFamily: 'var(--pl-mono)', padding: '10px 0' },
  '.cm-gutters': { backgroundColor: 'var(--pl-surface)', color: 'var(--pl-ink-faint)', border: '0', fontFamily: 'var(--pl-mono)' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': { backgroundColor: 'var(--pl-brand-soft) !important' },
  '.cm-panels': { backgroundColor: 'var(--pl-raised)', color: 'var(--pl-ink)' },
  '.cm-searchMatch': { backgroundColor: 'var(--pl-pending-soft)' },
});

export function YamlView({ text }: { text: string }) {
  const home = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView>(null);
  useEffect(() => {
    const view = new EditorView({
      parent: home.current!,
      state: EditorState.create({
        extensions: [
          EditorView.cspNonce.of(nonce),
          EditorState.readOnly.of(true),
          EditorView.contentAttributes.of({ 'aria-label': 'YAML', 'aria-readonly': 'true' }),
          EditorView.lineWrapping,
          lineNumbers(),
          foldGutter(),
          drawSelection(),
          highlightSelectionMatches(),
          search({ top: true }),
          keymap.of(searchKeymap),
          yaml(),
          syntaxHighlighting(COLOURS),
          LOOK,
        ],
      }),
    });
    editor.current = view;
    return () => {
      editor.current = null;
      view.destroy();
    };
  }, []);
  useEffect(() => {
    const view = editor.current;
    if (view === null) return;
    const change = smallest(view.state.doc.toString(), text);
    if (change !== null) view.dispatch({ changes: change });
  }, [text]);
  return <div ref={home} className="pl-yaml" />;
}

/** The one replacement that turns a text into another, as short as its common beginning and end allow. */
export function smallest(before: string, after: string): { from: number; to: number; insert: string } | null {
  if (before === after) return null;
  const most = Math.min(before.length, after.length);
  let from = 0;
  while (from < most && before[from] === after[from]) from += 1;
  let back = 0;
  while (back < most - from && before[before.length - 1 - back] === after[after.length - 1 - back]) back += 1;
  return { from, to: before.length - back, insert: after.slice(from, after.length - back) };
}
