/** The whole page: providers, then the login or the frame with the page that the URL names. */
import { Button } from 'antd';
import { Component, lazy, Suspense, useCallback, useEffect, useRef, useState, type ComponentType, type LazyExoticComponent, type ReactNode } from 'react';
import { Empty, ErrorNotice, Loading, Page } from '../parts/index.ts';
import { Frame } from './Frame.tsx';
import { TextProvider, useText } from './i18n.tsx';
import { AnnounceProvider, KeyboardProvider } from './keys.tsx';
import { fetchPart, MissingPart } from './retry.ts';
import { Link, useRoute, type PageName } from './router.tsx';
import { SessionProvider, useSession } from './session.tsx';
import { ThemeProvider } from './theme.tsx';

type PageModule = { default: ComponentType };

function page(load: () => Promise<PageModule>): LazyExoticComponent<ComponentType> {
  return lazy(() => fetchPart(load));
}

const PAGES: Record<PageName, LazyExoticComponent<ComponentType>> = {
  overview: page(() => import('../pages/overview/index.tsx')),
  jobs: page(() => import('../pages/jobs/index.tsx')),
  job: page(() => import('../pages/job/index.tsx')),
  create: page(() => import('../pages/create/index.tsx')),
  train: page(() => import('../pages/train/index.tsx')),
  apps: page(() => import('../pages/apps/index.tsx')),
  app: page(() => import('../pages/app/index.tsx')),
  history: page(() => import('../pages/history/index.tsx')),
  notebooks: page(() => import('../pages/notebooks/index.tsx')),
  tensorboards: page(() => import('../pages/tensorboards/index.tsx')),
  compare: page(() => import('../pages/compare/index.tsx')),
  volumes: page(() => import('../pages/volumes/index.tsx')),
  settings: page(() => import('../pages/settings/index.tsx')),
  about: page(() => import('../pages/about/index.tsx')),
  login: page(() => import('../pages/login/index.tsx')),
};

function NotFound() {
  const { common } = useText();
  return (
    <Page name="notFound" title={common.notFound.title}>
      <Empty title={common.notFound.title} hint={common.notFound.hint}>
        <Link to="/">{common.notFound.home}</Link>
      </Empty>
    </Page>
  );
}

function Crash({ error }: { error: unknown }) {
  const { errors } = useText().common;
  const isMissing = error instanceof MissingPart;
  const title = isMissing ? errors.missing : errors.crashed;
  return (
    <Page name="crash" title={title}>
      <ErrorNotice
        error={error}
        title={title}
        hint={isMissing ? errors.missingHint : errors.crashedHint}
        extra={
          <Button size="small" onClick={() => location.reload()}>
            {errors.reload}
          </Button>
        }
      />
    </Page>
  );
}

/** A page that fails leaves the frame alone. */
class Guard extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    return this.state.error === null ? this.props.children : <Crash error={this.state.error} />;
  }
}

function CurrentPage() {
  const { page, path } = useRoute();
  const Shown = page === null ? NotFound : PAGES[page];
  return (
    <Guard key={page === null ? path : page}>
      <Suspense fallback={<div className="pl-page"><Loading rows={8} /></div>}>
        <Shown />
      </Suspense>
    </Guard>
  );
}

function Shell() {
  const { state } = useSession();
  const { page } = useRoute();
  const Login = PAGES.login;
  if (state === 'loading') return null;
  const isOut = state === 'out' || state === 'down' || page === 'login';
  return (
    <Suspense fallback={null}>
      {isOut ? <Login /> : <Frame><CurrentPage /></Frame>}
      {state === 'expired' && !isOut && <Login />}
    </Suspense>
  );
}

/** Texts for screen readers go into one polite region, each replaced by the next. */
function Announcer({ children }: { children: ReactNode }) {
  const [text, setText] = useState('');
  const count = useRef(0);
  const announce = useCallback((next: string) => {
    // The same words twice are read twice.
    count.current += 1;
    setText(next + (count.current % 2 === 0 ? '\u00a0' : ''));
  }, []);
  return (
    <AnnounceProvider value={announce}>
      {children}
      <div className="pl-hidden" role="status" aria-live="polite">
        {text}
      </div>
    </AnnounceProvider>
  );
}

function Title() {
  const { common } = useText();
  useEffect(() => {
    document.title = common.product;
  }, [common]);
  return null;
}

export function Console() {
  return (
    <TextProvider>
      <ThemeProvider>
        <KeyboardProvider>
          <Announcer>
            <SessionProvider>
              <Title />
              <Shell />
            </SessionProvider>
          </Announcer>
        </KeyboardProvider>
      </ThemeProvider>
    </TextProvider>
  );
}
