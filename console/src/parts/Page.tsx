import { Skeleton } from 'antd';
import { useEffect, useState, type ReactNode } from 'react';
import { useTitle } from '../app/hooks.ts';

interface Props {
  /** The page's name for tests: `data-page`. */
  name: string;
  title: string;
  /** What stands beside the title when it is not plain text. */
  heading?: ReactNode;
  description?: ReactNode;
  actions?: ReactNode;
  /** Revision that is shown; tests wait on it. */
  revision?: string | undefined;
  /** A page that fills the height and scrolls inside: logs, editors. */
  isFull?: boolean;
  children?: ReactNode;
}

/** The root of every page: title, actions, content. */
export function Page({ name, title, heading, description, actions, revision, isFull = false, children }: Props) {
  useTitle(title);
  return (
    <div className={isFull ? 'pl-page pl-page-full' : 'pl-page'} data-page={name} data-revision={revision}>
      <header className="pl-page-header">
        <div className="pl-page-title">
          {heading ?? <h1>{title}</h1>}
          {description && <p>{description}</p>}
        </div>
        {actions && <div className="pl-page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A panel with a title. */
export function Section({ title, hint, extra, children, isFlush = false }: { title?: ReactNode; hint?: ReactNode; extra?: ReactNode; children?: ReactNode; isFlush?: boolean }) {
  return (
    <section className="pl-section">
      {(title || extra) && (
        <header className="pl-section-header">
          <div>
            {title && <h2>{title}</h2>}
            {hint && <p>{hint}</p>}
          </div>
          {extra && <div className="pl-section-extra">{extra}</div>}
        </header>
      )}
      <div className={isFlush ? 'pl-section-body pl-flush' : 'pl-section-body'}>{children}</div>
    </section>
  );
}

/** Names and values, one pair a line. */
export function Facts({ items }: { items: readonly (readonly [label: ReactNode, value: ReactNode])[] }) {
  return (
    <dl className="pl-facts">
      {items.map(([label, value], index) => (
        <div key={index}>
          <dt>{label}</dt>
          <dd>{value ?? <span className="pl-faint">–</span>}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The shape of what is coming, after 150 ms: what comes sooner should not flash. */
export function Loading({ rows = 6, height }: { rows?: number; height?: number }) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div style={{ minHeight: height ?? rows * 34 }} aria-busy>
      {isLate && <Skeleton active title={false} paragraph={{ rows }} />}
    </div>
  );
}
