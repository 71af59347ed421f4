import type { ReactNode } from 'react';
import { useText } from '../app/i18n.tsx';
import { Mark } from './Mark.tsx';

/** Nothing here yet: what this place is for, and the one thing to do about it. */
export function Empty({ title, hint, children, icon }: { title?: string; hint?: ReactNode; children?: ReactNode; icon?: ReactNode }) {
  const { common } = useText();
  return (
    <div className="pl-empty">
      <div className="pl-empty-icon" aria-hidden>
        {icon ?? <Mark size={36} isQuiet />}
      </div>
      <h2>{title ?? common.empty.none}</h2>
      {hint && <p>{hint}</p>}
      {children && <div className="pl-empty-actions">{children}</div>}
    </div>
  );
}
