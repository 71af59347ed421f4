import { CheckOutlined, CopyOutlined } from '@ant-design/icons';
import { Button, Tooltip, type ButtonProps } from 'antd';
import { useEffect, useState, type ReactNode } from 'react';
import { useText } from '../app/i18n.tsx';

async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Plain HTTP on another host has no clipboard API.
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
  return undefined;
}

type Props = Pick<ButtonProps, 'size' | 'type'> & { text: string | (() => string); label?: string; children?: ReactNode };

/** Copies a text, and says so for a moment. */
export function CopyButton({ text, label, children, size = 'small', type = 'text' }: Props) {
  const { common } = useText();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const name = isCopied ? common.actions.copied : (label ?? common.actions.copy);
  const press = () => void copy(typeof text === 'string' ? text : text()).then(() => setCopied(true));
  return (
    <Tooltip title={children ? undefined : name}>
      <Button size={size} type={type} onClick={press} aria-label={children ? undefined : name} icon={isCopied ? <CheckOutlined /> : <CopyOutlined />}>
        {children && (isCopied ? common.actions.copied : children)}
      </Button>
    </Tooltip>
  );
}

/** A command to run in a terminal, with a button that copies it. */
export function Command({ children }: { children: string }) {
  return (
    <div className="pl-command">
      <span className="pl-prompt" aria-hidden>
        $
      </span>
      <code>{children}</code>
      <CopyButton text={children} />
    </div>
  );
}
