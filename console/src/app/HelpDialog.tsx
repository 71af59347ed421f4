import { Modal } from 'antd';
import { useEffect, useState } from 'react';
import { useText } from './i18n.tsx';
import { activeShortcuts, useShortcut } from './keys.tsx';
import { navigate } from './router.tsx';

const OPEN = 'paceline:help';

export function openHelp(): void {
  window.dispatchEvent(new Event(OPEN));
}

function Keys({ keys }: { keys: string }) {
  const { keyboard } = useText().common;
  const [first, second] = keys.split(' ');
  return (
    <span className="pl-keys">
      <kbd>{first}</kbd>
      {second !== undefined && (
        <>
          <span>{keyboard.then}</span>
          <kbd>{second}</kbd>
        </>
      )}
    </span>
  );
}

/** Lists what the keyboard does on this page, and holds the shortcuts that work everywhere. */
export function HelpDialog() {
  const { keyboard } = useText().common;
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const open = () => setOpen(true);
    window.addEventListener(OPEN, open);
    return () => window.removeEventListener(OPEN, open);
  }, []);
  useShortcut('?', keyboard.help, openHelp);
  useShortcut('g o', keyboard.overview, () => navigate('/'));
  useShortcut('g j', keyboard.jobs, () => navigate('/jobs'));
  useShortcut('g a', keyboard.apps, () => navigate('/apps'));
  useShortcut('g n', keyboard.notebooks, () => navigate('/notebooks'));
  useShortcut('g t', keyboard.tensorboards, () => navigate('/tensorboards'));
  useShortcut('g s', keyboard.settings, () => navigate('/settings'));
  useShortcut('c', keyboard.create, () => navigate('/create'));
  return (
    <Modal open={isOpen} title={keyboard.title} footer={null} onCancel={() => setOpen(false)} destroyOnHidden width={440}>
      <dl className="pl-shortcuts">
        {isOpen &&
          activeShortcuts().map((shortcut) => (
            <div key={shortcut.keys + shortcut.label}>
              <dt>{shortcut.label}</dt>
              <dd>
                <Keys keys={shortcut.keys} />
              </dd>
            </div>
          ))}
      </dl>
    </Modal>
  );
}
