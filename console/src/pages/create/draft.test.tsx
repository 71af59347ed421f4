// @vitest-environment happy-dom
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { useParsed } from './draft.ts';

const EMPTY = 'kind: GenericJob\nmetadata:\n  name:\n';
const NAMED = 'kind: GenericJob\nmetadata:\n  name: kept\n';
let root: Root;
let shown: ReturnType<typeof useParsed>;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.useFakeTimers();
  root = createRoot(document.createElement('div'));
});

afterEach(() => {
  act(() => root.unmount());
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function Probe({ text, isTyping }: { text: string; isTyping: boolean }) {
  shown = useParsed(text, isTyping);
  return null;
}

function render(text: string, isTyping: boolean) {
  act(() => root.render(<Probe text={text} isTyping={isTyping} />));
}

const nameShown = () => shown.parsed.parts[0]?.get(['metadata', 'name']);

test('what is typed is read when the typing pauses', () => {
  render(EMPTY, false);
  render(NAMED, true);
  expect(nameShown()).toBeNull();
  act(() => vi.advanceTimersByTime(200));
  expect(nameShown()).toBe('kept');
});

test('text that is no YAML right after a change in the form leaves that change in the form', () => {
  render(EMPTY, false);
  render(NAMED, false);
  expect(nameShown()).toBe('kept');
  render('spec: [\n', true);
  expect([shown.isReadable, nameShown()]).toEqual([true, 'kept']);
  act(() => vi.advanceTimersByTime(200));
  expect([shown.isReadable, nameShown()]).toEqual([false, 'kept']);
});
