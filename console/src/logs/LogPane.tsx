import { VerticalAlignBottomOutlined } from '@ant-design/icons';
import { Alert, App, Button, Tag, type InputRef } from 'antd';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useText } from '../app/i18n.tsx';
import { useAnnounce, useShortcut } from '../app/keys.tsx';
import { usePreferences } from '../app/preferences.ts';
import { useQuery } from '../app/router.tsx';
import { bytesText, Empty, ErrorNotice, replicaColour, useNow } from '../parts/index.ts';
import { nextNumber, type Found, type LogClient } from './client.ts';
import { LineDetail } from './LineDetail.tsx';
import type { RowLabel } from './LogRow.tsx';
import { DownloadButton, FilterBar, FindBar, LayoutChooser, PopOutButton, ReplicaChooser, ViewOptions } from './LogToolbar.tsx';
import { LogView, type LogViewHandle } from './LogView.tsx';
import type { Frame, LogStatus, ShownRow, ViewSpec } from './messages.ts';
import { MAX_LOGS } from './order.ts';
import { formatLink, INITIAL, isFiltered, MAX_COLUMNS, parseLink, prefixOf, queryOf, shownSources, stateOf, type PaneState } from './selection.ts';
import type { LogSource, LogStream } from './stream.ts';
import { useLogClient, useStreams } from './useStreams.ts';
import './logs.css';

export type { LogSource } from './stream.ts';

const HUES = 8;
const SUMMARY_MS = 250;
const SILENT_MS = 2 * 60_000;

export interface LogPaneProps {
  /** All logs there are, of all attempts; the pane chooses among them. */
  sources: LogSource[];
  /** The pod that failed: the pane opens at its first traceback. */
  failedPod?: string | undefined;
  /** Keep what is chosen, and the linked line, in the address of the page. One pane of a page may do that. */
  linked?: boolean;
  /** CSS height; the rest of the window by default. */
  height?: string | number;
}

/** Logs of one or many containers: merged by time, or side by side; searched, filtered and followed. */
export function LogPane({ sources, failedPod, linked = false, height }: LogPaneProps) {
  const { logs } = useText();
  const { message } = App.useApp();
  const [preferences] = usePreferences();
  const [state, change] = usePaneState(linked);
  const client = useLogClient(() => {
    change({ find: '', isRegex: false });
    void message.warning(logs.tooSlow, 10);
  });
  const { shown, left } = useMemo(() => shownSources(sources, state), [sources, state]);
  const columns = state.layout === 'side' && shown.length > 1 ? shown.slice(0, MAX_COLUMNS) : null;
  const streams = useStreams(client, columns ?? shown, preferences.logs.tail);
  const [isOut, setOut] = useState(false);
  useEffect(() => {
    if (!isOut) return undefined;
    const leave = (event: KeyboardEvent) => event.key === 'Escape' && !(event.target instanceof HTMLInputElement) && setOut(false);
    window.addEventListener('keydown', leave);
    return () => window.removeEventListener('keydown', leave);
  }, [isOut]);
  const [clients] = useState(() => new WeakMap<LogClient, number>());
  if (client && !clients.has(client)) clients.set(client, nextNumber());
  return (
    <section className={`log-pane${isOut ? ' is-out' : ''}`} style={height === undefined || isOut ? undefined : { height }} data-logs={streams.length}>
      {client && (
        <Body
          key={clients.get(client)}
          {...{ client, sources, shown, left, streams, state, change, linked, isOut, setOut }}
          isSideBySide={columns !== null}
          failedPod={failedPod}
        />
      )}
    </section>
  );
}

function usePaneState(linked: boolean): [PaneState, (patch: Partial<PaneState>) => void] {
  const [query, setQuery] = useQuery();
  const [state, setState] = useState<PaneState>(() => (linked ? stateOf(query) : INITIAL));
  const change = useCallback((patch: Partial<PaneState>) => setState((now) => ({ ...now, ...patch })), []);
  useEffect(() => {
    if (!linked) return undefined;
    // Not at every key: browsers limit how often an address changes.
    const timer = setTimeout(() => setQuery(queryOf(state)), 300);
    return () => clearTimeout(timer);
  }, [linked, state, setQuery]);
  return [state, change];
}

interface BodyProps {
  client: LogClient;
  sources: LogSource[];
  shown: LogSource[];
  left: number;
  streams: LogStream[];
  state: PaneState;
  change: (patch: Partial<PaneState>) => void;
  linked: boolean;
  isOut: boolean;
  setOut: (isOut: boolean) => void;
  isSideBySide: boolean;
  failedPod: string | undefined;
}

function Body({ client, sources, shown, left, streams, state, change, linked, isOut, setOut, isSideBySide, failedPod }: BodyProps) {
  const { logs } = useText();
  const announce = useAnnounce();
  const { message } = App.useApp();
  const [preferences, setPreferences] = usePreferences();
  const [isFollowing, setFollowing] = useState(true);
  const [frames, takeFrame] = useFrames();
  const [current, setCurrent] = useState<Found | null>(null);
  const [detail, setDetail] = useState<ShownRow | null>(null);
  const [active, setActive] = useState(0);
  const handles = useRef<(LogViewHandle | null)[]>([]);
  const input = useRef<InputRef>(null);

  const groups = useMemo(() => (isSideBySide ? streams.map((stream) => [stream]) : [streams]), [isSideBySide, streams]);
  const labels = useLabels(streams, sources, state);
  const specs = useSpecs(groups, state);
  const formatTime = useStampFormat(preferences.logs.stamps, frames);
  const column = Math.min(active, groups.length - 1);

  const onNext = useCallback(
    (direction: 1 | -1) =>
      void handles.current[column]?.nextHit(direction).then((found) => {
        setCurrent(found.row === null ? null : found);
        if (found.row !== null) announce(logs.hits(found.hit + 1, frames.get(column)?.hits ?? 0));
      }),
    [column, announce, logs, frames],
  );
  useEffect(() => setCurrent(null), [state.find, state.isRegex, state.matchCase]);
  const streamOf = useCallback((row: ShownRow) => streams.find((stream) => stream.log === row.log)?.source, [streams]);
  const onLink = useCallback(
    (row: ShownRow) => {
      const source = streamOf(row);
      if (!source) return;
      const url = new URL(location.href);
      url.searchParams.set('line', formatLink({ ...source, stamp: row.stamp, nth: row.nth }));
      void navigator.clipboard?.writeText(url.href).then(() => message.success(logs.linkCopied));
    },
    [streamOf, message, logs],
  );
  const follow = useCallback(() => setFollowing(true), []);
  const words = useMemo(() => ({ earlier: logs.earlier, more: logs.more, copyLink: logs.copyLink }), [logs]);
  const missing = useOpening({ streams, linked, failedPod, handle: () => handles.current[0] ?? null, isReady: frames.size > 0 });

  useShortcut('/', logs.keys.find, () => input.current?.focus({ cursor: 'all' }));
  useShortcut('n', logs.keys.next, () => onNext(1));
  useShortcut('N', logs.keys.previous, () => onNext(-1));
  useShortcut('g g', logs.keys.top, () => handles.current[column]?.toTop());
  useShortcut('G', logs.keys.bottom, follow);
  useShortcut('f', logs.keys.follow, () => setFollowing((now) => !now));
  useShortcut('w', logs.keys.wrap, () => setPreferences({ logs: { ...preferences.logs, wrap: !preferences.logs.wrap } }));

  const frame = frames.get(column) ?? null;
  return (
    <>
      <div className="log-toolbar">
        <ReplicaChooser sources={sources} state={state} onChange={change} />
        <LayoutChooser sources={sources} state={state} onChange={change} />
        <div className="log-buttons">
          <ViewOptions />
          <DownloadButton sources={shown} all={sources} />
          <PopOutButton isOut={isOut} onChange={setOut} />
        </div>
      </div>
      <div className="log-toolbar">
        <FindBar
          state={state}
          onChange={change}
          hits={frame?.hits ?? 0}
          current={current}
          isSearching={frame?.isSearching ?? false}
          error={frame?.error ?? ''}
          onNext={onNext}
          input={input}
        />
        <FilterBar state={state} onChange={change} />
      </div>
      {left > 0 && <Alert type="info" showIcon title={logs.tooMany(MAX_LOGS)} />}
      {missing && <Alert type="warning" showIcon closable title={logs.lineMissing} />}
      <Faults streams={streams} />
      <div className="log-columns">
        {groups.map((group, index) => (
          <div className="log-column" key={group.map((stream) => stream.log).join()} onPointerDown={() => setActive(index)} onFocus={() => setActive(index)}>
            {isSideBySide && <h3 style={{ color: labels.get(group[0]!.log)?.colour }}>{labels.get(group[0]!.log)?.text}</h3>}
            <LogView
              client={client}
              spec={specs[index]!}
              labels={isSideBySide || streams.length <= 1 ? null : labels}
              formatStamp={formatTime}
              isWrapped={preferences.logs.wrap}
              fontSize={preferences.logs.fontSize}
              isFollowing={isFollowing}
              onFollow={setFollowing}
              onFrame={(next) => takeFrame(index, next)}
              onDetail={setDetail}
              onLink={onLink}
              words={{ ...words, label: logs.label(group.map((stream) => stream.source.replica).join(', ')) }}
              handle={(handle) => {
                handles.current[index] = handle;
              }}
            />
            <Nothing frame={frames.get(index) ?? null} streams={group} state={state} onClear={() => change({ ...INITIAL, chosen: state.chosen, attempt: state.attempt })} />
          </div>
        ))}
      </div>
      <Footer streams={streams} frames={[...frames.values()].slice(0, groups.length)} isFollowing={isFollowing} onFollow={setFollowing} />
      {detail && <LineDetail client={client} row={detail} name={streamOf(detail)?.replica ?? ''} onClose={() => setDetail(null)} />}
    </>
  );
}

/** The last frame of each column; numbers that only grow are taken over a few times a second. */
function useFrames(): [Map<number, Frame>, (index: number, frame: Frame) => void] {
  const [frames, setFrames] = useState(new Map<number, Frame>());
  const latest = useRef(new Map<number, Frame>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const take = useCallback((index: number, frame: Frame) => {
    const before = latest.current.get(index);
    latest.current.set(index, frame);
    const isNews = !before || before.isSearching !== frame.isSearching || before.error !== frame.error || before.total === 0;
    if (timer.current !== undefined && !isNews) return;
    clearTimeout(timer.current);
    timer.current = setTimeout(
      () => {
        timer.current = undefined;
        setFrames(new Map(latest.current));
      },
      isNews ? 0 : SUMMARY_MS,
    );
  }, []);
  return [frames, take];
}

function useLabels(streams: LogStream[], sources: LogSource[], state: PaneState): Map<number, RowLabel> {
  return useMemo(() => {
    const texts = streams.map((stream) => prefixOf(stream.source, sources, state.attempt));
    const width = Math.max(0, ...texts.map((text) => text.length));
    return new Map(
      streams.map(({ log, source }, index) => [
        log,
        { text: texts[index]!.padEnd(width), colour: replicaColour(source.color), isDashed: Math.floor(source.color / HUES) % 2 === 1 },
      ]),
    );
  }, [streams, sources, state.attempt]);
}

function useSpecs(groups: LogStream[][], state: PaneState): ViewSpec[] {
  const { find, isRegex, matchCase, onlyMatching, context, level, from, to } = state;
  return useMemo(
    () =>
      groups.map((group) => ({
        logs: group.map((stream) => stream.log),
        query: { text: find, isRegex, matchCase },
        onlyMatching,
        context,
        level,
        from,
        to,
      })),
    [groups, find, isRegex, matchCase, onlyMatching, context, level, from, to],
  );
}

/** Times of the browser's zone; with the date where lines are of several days. */
function useStampFormat(isOn: boolean, frames: Map<number, Frame>): ((stamp: string) => string) | null {
  const days = new Set<string>();
  for (const frame of frames.values())
    for (const { first, last } of frame.logs) for (const stamp of [first, last]) if (stamp) days.add(new Date(stamp).toDateString());
  const hasDays = days.size > 1;
  return useMemo(() => {
    if (!isOn) return null;
    const pad = (number: number, length = 2) => String(number).padStart(length, '0');
    return (stamp) => {
      if (stamp === '') return hasDays ? '                  ' : '            ';
      const date = new Date(stamp);
      const day = hasDays ? `${pad(date.getMonth() + 1)}-${pad(date.getDate())} ` : '';
      return `${day}${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`;
    };
  }, [isOn, hasDays]);
}

interface Opening {
  streams: LogStream[];
  linked: boolean;
  failedPod: string | undefined;
  handle: () => LogViewHandle | null;
  isReady: boolean;
}

/** Open at the linked line, or at the first traceback of the pod that failed; return whether the linked line is gone. */
function useOpening({ streams, linked, failedPod, handle, isReady }: Opening): boolean {
  const [query] = useQuery();
  const link = useMemo(() => (linked ? parseLink(query.get('line')) : null), [linked, query]);
  const [isMissing, setMissing] = useState(false);
  const done = useRef<string | null>(null);
  const wanted = link ? formatLink(link) : (failedPod ?? null);
  const stream = streams.find(({ source }) => (link ? source.pod === link.pod && source.container === link.container : source.pod === failedPod));
  const { phase, isWhole, hasBytes } = stream?.state ?? {};
  useEffect(() => {
    if (!stream || !isReady || wanted === null || done.current === wanted) return;
    if (!link && phase !== 'ended') return;
    if (link && !hasBytes && phase !== 'ended') return;
    const target = link ? { kind: 'line' as const, log: stream.log, stamp: link.stamp, nth: link.nth } : { kind: 'traceback' as const, log: stream.log };
    let isCurrent = true;
    void handle()
      ?.seek(target)
      .then((found) => {
        if (!isCurrent || done.current === wanted) return;
        if (found.row !== null) handle()?.show(found);
        else if (link && !isWhole) return stream.loadEverything();
        else if (link && phase !== 'ended' && stream.state.loading !== null) return;
        else setMissing(link !== null);
        done.current = wanted;
      });
    return () => {
      isCurrent = false;
    };
  }, [stream, isReady, wanted, link, phase, isWhole, hasBytes, handle]);
  return isMissing;
}

function Faults({ streams }: { streams: LogStream[] }) {
  const failed = streams.filter((stream) => stream.state.phase === 'failed');
  return failed.slice(0, 3).map((stream) => <ErrorNotice key={stream.log} error={stream.state.error} title={stream.source.replica} />);
}

/** Why no line is shown. */
function Nothing({ frame, streams, state, onClear }: { frame: Frame | null; streams: LogStream[]; state: PaneState; onClear: () => void }) {
  const { logs } = useText();
  if (frame && frame.total > 0) return null;
  const hasLines = frame?.logs.some((log) => log.lines > 0) ?? false;
  if (streams.length === 0) return <Over title={logs.none} hint={logs.noneHint} />;
  if (hasLines && isFiltered(state) && !frame?.isSearching)
    return (
      <Over title={logs.noMatch} hint={logs.noMatchHint}>
        <Button onClick={onClear}>{logs.clear}</Button>
      </Over>
    );
  if (hasLines || streams.every((stream) => stream.state.phase === 'failed')) return null;
  if (streams.some((stream) => stream.state.phase === 'waiting' && stream.state.error)) return <Over title={logs.waiting} />;
  // Bytes may have come of which no line has been drawn yet.
  if (streams.some((stream) => stream.state.hasBytes) || streams.every((stream) => stream.state.phase === 'connecting')) return <Over title={logs.connecting} />;
  const isOver = streams.every((stream) => stream.state.phase === 'ended');
  return <Over title={logs.empty} hint={isOver ? logs.emptyEnded : logs.emptyHint} />;
}

function Over(props: { title: string; hint?: string; children?: React.ReactNode }) {
  return (
    <div className="log-over">
      <Empty {...props} />
    </div>
  );
}

/** Follow, how much there is, what is missing, and how long nothing came. */
function Footer({ streams, frames, isFollowing, onFollow }: { streams: LogStream[]; frames: Frame[]; isFollowing: boolean; onFollow: (isFollowing: boolean) => void }) {
  const { logs } = useText();
  const [preferences] = usePreferences();
  const status = frames.flatMap((frame) => frame.logs);
  const sum = (of: (log: LogStatus) => number) => status.reduce((total, log) => total + of(log), 0);
  const lines = sum((log) => log.lines);
  const dropped = sum((log) => log.dropped);
  const shown = frames.reduce((total, frame) => total + frame.total, 0);
  const loading = streams.filter((stream) => stream.state.loading !== null);
  const isPartial = streams.some((stream, index) => !stream.state.isWhole && (status[index]?.lines ?? 0) >= preferences.logs.tail);
  const number = (count: number) => count.toLocaleString();
  return (
    <div className="log-footer">
      <Button
        size="small"
        type={isFollowing ? 'primary' : 'default'}
        icon={<VerticalAlignBottomOutlined />}
        aria-pressed={isFollowing}
        title={logs.followHint}
        onClick={() => onFollow(!isFollowing)}
      >
        {isFollowing ? logs.following : logs.follow}
      </Button>
      <Silence streams={streams} status={status} />
      <Exits streams={streams} />
      {dropped > 0 && (
        <Tag color="warning" title={logs.dropped(number(dropped))}>
          {logs.droppedShort(number(dropped))}
        </Tag>
      )}
      <span className="log-amount">
        {loading.length > 0 ? (
          <span role="status">{logs.loading(number(loading.reduce((total, stream) => total + (stream.state.loading ?? 0), 0)))}</span>
        ) : (
          isPartial && (
            <Button size="small" type="link" title={logs.loadAllHint(number(preferences.logs.tail))} onClick={() => streams.forEach((stream) => stream.loadEverything())}>
              {logs.loadAll}
            </Button>
          )
        )}
        <span className="pl-figures">
          {shown < lines ? logs.shownOf(number(shown), number(lines)) : logs.lines(lines)} · {bytesText(sum((log) => log.bytes)).replace(/i$/, 'iB')}
        </span>
      </span>
    </div>
  );
}

function Silence({ streams, status }: { streams: LogStream[]; status: LogStatus[] }) {
  const { logs } = useText();
  const open = new Set(streams.filter((stream) => !stream.source.ended && stream.state.phase !== 'ended').map((stream) => stream.log));
  const last = status.reduce((latest, log) => (open.has(log.log) && log.last > latest ? log.last : latest), '');
  const time = last === '' ? undefined : Date.parse(last);
  const now = useNow(time);
  if (time === undefined || now - time < SILENT_MS) return null;
  const minutes = Math.floor((now - time) / 60_000);
  return <Tag color="gold">{minutes < 120 ? logs.silent(minutes) : logs.silentHours(Math.floor(minutes / 60))}</Tag>;
}

function Exits({ streams }: { streams: LogStream[] }) {
  const { logs } = useText();
  const failed = streams.filter((stream) => (stream.state.exitCode ?? 0) !== 0);
  // Those that were stopped because of another one come last.
  failed.sort((one, other) => Number(one.state.exitCode! > 128) - Number(other.state.exitCode! > 128));
  return failed.slice(0, 3).map((stream) => (
    <Tag key={stream.log} color="error">
      {stream.source.replica}: {logs.exited(stream.state.exitCode!)}
    </Tag>
  ));
}
