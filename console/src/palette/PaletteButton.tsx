/** Opens the command palette, by a click or Ctrl-K. */
import { SearchOutlined } from '@ant-design/icons';
import { Button } from 'antd';
import { useLayoutEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { useText } from '../app/i18n.tsx';
import { useShortcut } from '../app/keys.tsx';
import { CommandPalette } from './CommandPalette.tsx';

const IS_MAC = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform);
const KEYS = IS_MAC ? '⌘K' : 'Ctrl+K';

/** Whether a key press asks for the palette. In a terminal, Ctrl-K belongs to the shell. */
function asks(event: KeyboardEvent): boolean {
  const hasModifier = IS_MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  const isTerminal = !IS_MAC && event.target instanceof Element && event.target.closest('.xterm') !== null;
  return hasModifier && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k' && !isTerminal;
}

/** A question that waits for an answer, or the login over the page. */
function isBlocked(): boolean {
  return document.querySelector('.ant-modal-wrap:not([style*="display: none"]), .pl-login-over') !== null;
}

/**
 * The palette is part of the first page, not fetched when it is asked for, and is there before the key press ends: whoever knows
 * what to type goes on at once, and the next key belongs to its field.
 */
export function PaletteButton() {
  const { palette: words } = useText();
  const [isOpen, setOpen] = useState(false);
  const before = useRef<Element | null>(null);
  const open = () => {
    if (isOpen || isBlocked()) return;
    before.current = document.activeElement;
    flushSync(() => setOpen(true));
  };
  // A dialog that closes itself gives the focus back without the caret: in Chromium, what is typed next into a field gets lost.
  const close = () => {
    flushSync(() => setOpen(false));
    if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true });
  };
  const toggle = useRef(open);
  useLayoutEffect(() => {
    toggle.current = isOpen ? close : open;
  });
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!asks(event)) return;
      event.preventDefault();
      toggle.current();
    };
    // Before fields and editors, some of which have a meaning for it.
    window.addEventListener('keydown', press, true);
    return () => window.removeEventListener('keydown', press, true);
  }, []);
  // For the list of shortcuts: with a modifier it is not matched there.
  useShortcut(KEYS, words.title, open);
  return (
    <>
      <Button type="text" className="pl-palette-button" icon={<SearchOutlined aria-hidden />} title={words.title} aria-keyshortcuts={IS_MAC ? 'Meta+K' : 'Control+K'} aria-haspopup="dialog" onClick={open} data-action="palette">
        <span className="pl-palette-hint">{words.short}</span>
        <kbd aria-hidden>{KEYS}</kbd>
      </Button>
      {isOpen && <CommandPalette onClose={close} />}
    </>
  );
}
