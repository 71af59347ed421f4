import { Button } from 'antd';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal as Xterm, type ITheme } from '@xterm/xterm';
import { useEffect, useRef, useState } from 'react';
import { useText } from '../app/i18n.tsx';
import { MONO, useThemeName } from '../app/theme.tsx';
import { palettes, type ThemeName } from '../app/tokens.ts';
import { binaryInputFrame, inputFrame, PROTOCOL, readFrame, resizeFrame, shellUrl, type Ending, type Target } from './channel.ts';

type State = { step: 'connecting' } | { step: 'connected' } | { step: 'ended'; ending: Ending | null };

/** A shell in a container of a running pod. */
export function Terminal({ namespace, pod, container }: Target) {
  const t = useText();
  const [attempt, setAttempt] = useState(0);
  const [state, setState] = useState<State>({ step: 'connecting' });
  const screen = useRef<HTMLDivElement>(null);
  const shown = useRef<Xterm>(null);
  const theme = useThemeName();
  useEffect(() => {
    if (screen.current === null) return undefined;
    setState({ step: 'connecting' });
    const terminal = new Xterm({ cursorBlink: true, fontFamily: MONO, fontSize: 13, scrollback: 10_000, minimumContrastRatio: 4.5 });
    shown.current = terminal;
    const disconnect = connect(terminal, screen.current, { namespace, pod, container }, setState);
    return () => {
      shown.current = null;
      disconnect();
    };
  }, [namespace, pod, container, attempt]);
  useEffect(() => {
    if (shown.current !== null) shown.current.options.theme = themeOf(theme);
  }, [theme, attempt, namespace, pod, container]);
  return (
    <div className="pl-terminal" data-terminal={state.step}>
      <div className="pl-terminal-bar" role="status">
        <span>{stateText(state, t.interactive.terminal)}</span>
        {state.step === 'ended' ? (
          <Button size="small" onClick={() => setAttempt((count) => count + 1)}>
            {t.interactive.terminal.again}
          </Button>
        ) : (
          <span className="pl-faint">{t.interactive.terminal.hint}</span>
        )}
      </div>
      <div ref={screen} className="pl-terminal-screen" role="region" aria-label={t.interactive.terminal.label(container)} />
    </div>
  );
}

function stateText(state: State, words: ReturnType<typeof useText>['interactive']['terminal']): string {
  if (state.step !== 'ended') return words[state.step];
  if (state.ending === null) return words.cut;
  if (state.ending.exitCode !== null) return words.ended(state.ending.exitCode);
  return state.ending.message === '' ? words.failed : `${words.failed}: ${state.ending.message}`;
}

function themeOf(name: ThemeName): ITheme {
  const colours = palettes[name];
  return { background: colours.surface, foreground: colours.ink, cursor: colours.brand, cursorAccent: colours.surface, selectionBackground: colours.brandSoft };
}

/** Join a terminal on the screen with a shell; returns how to end both. */
function connect(terminal: Xterm, screen: HTMLElement, target: Target, onState: (state: State) => void): () => void {
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(screen);
  const socket = new WebSocket(shellUrl(target, location.href), PROTOCOL);
  socket.binaryType = 'arraybuffer';
  let ending: Ending | null = null;
  let isWanted = true;
  const send = (frame: Uint8Array<ArrayBuffer>) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(frame);
  };
  socket.onopen = () => {
    onState({ step: 'connected' });
    fit.fit();
    send(resizeFrame(terminal.cols, terminal.rows));
    terminal.focus();
  };
  socket.onmessage = (event: MessageEvent<ArrayBuffer>) => {
    const frame = readFrame(event.data);
    if (frame.type === 'output') terminal.write(frame.data);
    else if (frame.type === 'end') ending = frame.ending;
  };
  socket.onclose = () => {
    if (isWanted) onState({ step: 'ended', ending });
  };
  terminal.onData((text) => send(inputFrame(text)));
  terminal.onBinary((text) => send(binaryInputFrame(text)));
  terminal.onResize(({ cols, rows }) => send(resizeFrame(cols, rows)));
  const observer = new ResizeObserver(() => fit.fit());
  observer.observe(screen);
  return () => {
    isWanted = false;
    observer.disconnect();
    socket.close();
    terminal.dispose();
  };
}
