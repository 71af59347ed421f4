import { ArrowLeftOutlined, ExportOutlined, PauseOutlined, ReloadOutlined } from '@ant-design/icons';
import { Button, Spin, Tooltip } from 'antd';
import { useCallback, useEffect, useRef, useState, type ReactNode } from 'react';
import { asApiError, type ApiError } from '../app/api.ts';
import { useTitle } from '../app/hooks.ts';
import { useText } from '../app/i18n.tsx';
import { navigate, pathOf } from '../app/router.tsx';
import { Command, Empty, ErrorNotice } from '../parts/index.ts';
import { AppStatus } from './AppStatus.tsx';
import { appMessage, canFrame, openApp, reaches, type AppName, type Opened } from './embed.ts';
import { Question, type Asking } from './Question.tsx';
import { PLURALS, phaseOf, waitingFor, type Service } from './service.ts';

// What a page of a pod may do: everything on its own origin, but neither leave the frame nor open dialogs of the browser.
const SANDBOX = 'allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox allow-downloads';
// Its cookie has ended: get another one, but not for ever.
const MAX_REOPENINGS = 2;

type State =
  | { step: 'opening' }
  | { step: 'open'; opened: Opened }
  | { step: 'elsewhere' }
  | { step: 'unreachable' }
  | { step: 'error'; error: ApiError };

interface Props {
  app: AppName;
  service: Service | undefined;
  revision: string | undefined;
  /** Where the way back leads, and what it is called; the list of its kind by default. */
  back?: { to: string; label: string };
}

/** A TensorBoard or notebook in the console, with a thin bar above it. */
export function AppFrame({ app, service, revision, back }: Props) {
  const t = useText();
  const { kind, namespace, name } = app;
  const list = back?.to ?? pathOf(PLURALS[kind]);
  const label = back?.label ?? t.interactive.back[kind];
  const [attempt, setAttempt] = useState(0);
  const state = useOpening(app, attempt);
  const refusals = useRef(0);
  const reopen = useCallback(() => {
    refusals.current = 0;
    setAttempt((count) => count + 1);
  }, []);
  const refused = useCallback(() => {
    refusals.current += 1;
    if (refusals.current <= MAX_REOPENINGS) setAttempt((count) => count + 1);
  }, []);
  useTitle(name);
  const [asking, setAsking] = useState<Asking | null>(null);
  const answered = (isDone: boolean) => {
    setAsking(null);
    if (isDone) navigate(list);
  };
  return (
    <div className="pl-app" data-page={PLURALS[kind]} data-revision={revision} data-app-state={state.step}>
      <header className="pl-app-bar">
        <Tooltip title={label}>
          <Button type="text" icon={<ArrowLeftOutlined />} aria-label={label} onClick={() => navigate(list)} />
        </Tooltip>
        <h1>{name}</h1>
        {service && <AppStatus service={service} />}
        <span className="pl-app-gap" />
        <BarButton icon={<ReloadOutlined />} word={t.interactive.reload} onClick={reopen} />
        <NewTab app={app} state={state} />
        <BarButton icon={<PauseOutlined />} word={t.interactive.pause} onClick={() => setAsking({ action: 'pause', app })} isDisabled={!service || phaseOf(service) === 'Paused'} />
      </header>
      <AppContent app={app} state={state} service={service} attempt={attempt} onReopen={reopen} onRefused={refused} key={`${namespace}/${name}`} />
      <Question asking={asking} onEnd={answered} />
    </div>
  );
}

function BarButton({ icon, word, onClick, isDisabled = false }: { icon: ReactNode; word: string; onClick: () => void; isDisabled?: boolean }) {
  return (
    <Tooltip title={word}>
      <Button type="text" icon={icon} onClick={onClick} disabled={isDisabled} aria-label={word}>
        <span className="pl-app-word">{word}</span>
      </Button>
    </Tooltip>
  );
}

/** Opens the app by itself; where it is in a frame already, that tab has its cookie. */
function NewTab({ app, state }: { app: AppName; state: State }) {
  const t = useText();
  const word = t.interactive.newTab;
  if (state.step !== 'open') return <BarButton icon={<ExportOutlined />} word={word} onClick={() => void openTab(app)} isDisabled={state.step !== 'elsewhere'} />;
  return (
    <Tooltip title={word}>
      <Button type="text" icon={<ExportOutlined />} href={new URL(state.opened.url).origin} target="_blank" rel="noopener" aria-label={word}>
        <span className="pl-app-word">{word}</span>
      </Button>
    </Tooltip>
  );
}

async function openTab(app: AppName): Promise<void> {
  const { url, ticket } = await openApp(app, new AbortController().signal);
  window.open(`${url}#${ticket}`, '_blank', 'noopener');
}

function useOpening(app: AppName, attempt: number): State {
  const { kind, namespace, name } = app;
  const [state, setState] = useState<State>({ step: 'opening' });
  useEffect(() => {
    const ending = new AbortController();
    setState({ step: 'opening' });
    void open({ kind, namespace, name }, ending.signal)
      .catch((error: unknown): State => ({ step: 'error', error: asApiError(error) }))
      .then((next) => {
        if (!ending.signal.aborted) setState(next);
      });
    return () => ending.abort();
  }, [kind, namespace, name, attempt]);
  return state;
}

async function open(app: AppName, signal: AbortSignal): Promise<State> {
  const opened = await openApp(app, signal);
  if (!canFrame(opened.url, location.host)) return { step: 'elsewhere' };
  const isReached = await reaches(new URL(opened.url).origin, signal);
  return isReached ? { step: 'open', opened } : { step: 'unreachable' };
}

interface ContentProps {
  app: AppName;
  state: State;
  service: Service | undefined;
  attempt: number;
  onReopen: () => void;
  onRefused: () => void;
}

function AppContent({ app, state, service, attempt, onReopen, onRefused }: ContentProps) {
  const t = useText();
  switch (state.step) {
    case 'opening':
      return <Opening app={app} service={service} />;
    case 'open':
      return <Frame opened={state.opened} title={`${app.kind} ${app.name}`} attempt={attempt} onRefused={onRefused} />;
    case 'elsewhere':
      return (
        <Empty title={t.interactive.elsewhere} hint={t.interactive.elsewhereHint}>
          <Button type="primary" icon={<ExportOutlined />} onClick={() => void openTab(app)}>
            {t.interactive.newTab}
          </Button>
        </Empty>
      );
    case 'unreachable':
      return (
        <Empty title={t.interactive.unreachable} hint={t.interactive.unreachableHint}>
          <Command>{`paceline ${app.kind.toLowerCase()} ${app.name} -n ${app.namespace}`}</Command>
          <Button onClick={onReopen}>{t.common.actions.retry}</Button>
        </Empty>
      );
    case 'error':
      return (
        <div className="pl-app-notice">
          <ErrorNotice error={state.error} onRetry={onReopen} />
        </div>
      );
  }
}

/** The progress line: what the app is doing until it answers. */
function Opening({ app, service }: { app: AppName; service: Service | undefined }) {
  const t = useText();
  const phase = service && phaseOf(service);
  const step = phase === 'Paused' ? t.interactive.waking : phase === 'Running' ? t.interactive.opening : t.interactive.starting;
  const waiting = waitingFor(service);
  return (
    <div className="pl-app-opening" role="status" aria-live="polite">
      <Spin />
      <p>{step(app.name)}</p>
      {waiting !== '' && <p className="pl-faint" translate="no">{waiting}</p>}
    </div>
  );
}

function Frame({ opened, title, attempt, onRefused }: { opened: Opened; title: string; attempt: number; onRefused: () => void }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const origin = new URL(opened.url).origin;
  useEffect(() => {
    const hear = (event: MessageEvent) => {
      if (appMessage(event, origin, frame.current?.contentWindow) === 'refused') onRefused();
    };
    window.addEventListener('message', hear);
    return () => window.removeEventListener('message', hear);
  }, [origin, onRefused]);
  return (
    <iframe
      key={attempt}
      ref={frame}
      className="pl-app-frame"
      title={title}
      src={`${opened.url}#${opened.ticket}`}
      sandbox={SANDBOX}
      allow="clipboard-read; clipboard-write; fullscreen"
      referrerPolicy="no-referrer"
    />
  );
}
