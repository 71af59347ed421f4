/** Opens the command palette, by a click or Ctrl-K. The palette itself is fetched at the first time. */
import { SearchOutlined } from '@ant-design/icons';
import { App, Button } from 'antd';
import { useEffect, useRef, useState, type ComponentType } from 'react';
import { useText } from '../app/i18n.tsx';
import { useShortcut } from '../app/keys.tsx';
import { fetchPart } from '../app/retry.ts';

type Palette = ComponentType<{ onClose: () => void }>;

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

export function PaletteButton() {
  const { palette: words, common } = useText();
  const { message } = App.useApp();
  const [Shown, setShown] = useState<Palette | null>(null);
  const [isOpen, setOpen] = useState(false);
  const open = () => {
    if (isBlocked()) return;
    setOpen(true);
    if (Shown === null)
      fetchPart(() => import('./CommandPalette.tsx')).then(
        (module) => setShown(() => module.default),
        () => {
          setOpen(false);
          void message.error(common.errors.missing);
        },
      );
  };
  const opener = useRef(open);
  useEffect(() => {
    opener.current = open;
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!asks(event)) return;
      event.preventDefault();
      const present = document.querySelector<HTMLDialogElement>('dialog.pl-palette');
      if (present) present.close();
      else opener.current();
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
      {isOpen && Shown !== null && <Shown onClose={() => setOpen(false)} />}
    </>
  );
}
