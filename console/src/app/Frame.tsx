/** The frame around every page: side menu (a drawer on narrow screens), top bar, content. */
import { MenuOutlined } from '@ant-design/icons';
import { Button, Drawer } from 'antd';
import { useEffect, useState, type ReactNode } from 'react';
import { Mark } from '../parts/Mark.tsx';
import { clockText } from '../parts/time.ts';
import { Watcher } from '../watches/Watcher.tsx';
import { HelpDialog } from './HelpDialog.tsx';
import { live, useConnection } from './hooks.ts';
import { useText } from './i18n.tsx';
import { SideMenu } from './SideMenu.tsx';
import { TopBar } from './TopBar.tsx';
import { Link, useRoute } from './router.tsx';

function useIsNarrow(): boolean {
  const [query] = useState(() => window.matchMedia('(max-width: 860px)'));
  const [isNarrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const follow = () => setNarrow(query.matches);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, [query]);
  return isNarrow;
}

function Brand() {
  const { common } = useText();
  return (
    <Link to="/" className="pl-brand">
      <Mark size={26} />
      <span>{common.product}</span>
    </Link>
  );
}

/** Says that what is shown is old, after a moment: a short cut needs no alarm. */
function StaleBanner() {
  const { common, lang } = useText();
  const state = useConnection();
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    if (state !== 'lost') {
      setLate(false);
      return undefined;
    }
    const timer = setTimeout(() => setLate(true), 1500);
    return () => clearTimeout(timer);
  }, [state]);
  if (!isLate) return null;
  const time = live.heardAt === 0 ? common.connection.neverHeard : clockText(live.heardAt, lang);
  return (
    <div className="pl-stale" role="status">
      {common.connection.staleBanner(time)}
    </div>
  );
}

export function Frame({ children }: { children: ReactNode }) {
  const { common } = useText();
  const { path } = useRoute();
  const isNarrow = useIsNarrow();
  const isStale = useConnection() === 'lost';
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path, isNarrow]);
  return (
    <div className="pl-frame" data-stale={isStale}>
      {/* First, so that the list of shortcuts begins with those of every page, in the order of HelpDialog. */}
      <HelpDialog />
      <a className="pl-skip" href="#content">
        {common.nav.skip}
      </a>
      {!isNarrow && (
        <aside className="pl-side">
          <Brand />
          <SideMenu />
        </aside>
      )}
      {isNarrow && (
        <Drawer open={isOpen} onClose={() => setOpen(false)} placement="left" size={264} title={<Brand />} className="pl-drawer">
          <SideMenu />
        </Drawer>
      )}
      <div className="pl-main">
        <TopBar
          menu={
            isNarrow && (
              <Button type="text" icon={<MenuOutlined />} aria-label={common.nav.open} aria-expanded={isOpen} onClick={() => setOpen(true)} />
            )
          }
        />
        <StaleBanner />
        <main id="content" className="pl-content" tabIndex={-1}>
          {children}
        </main>
      </div>
      <Watcher />
    </div>
  );
}
