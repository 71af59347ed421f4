import {
  ColumnWidthOutlined,
  DownloadOutlined,
  DownOutlined,
  ExpandOutlined,
  CompressOutlined,
  MergeCellsOutlined,
  SearchOutlined,
  SettingOutlined,
  UpOutlined,
} from '@ant-design/icons';
import { Button, Checkbox, Dropdown, Input, InputNumber, Popover, Segmented, Select, Switch, Tooltip, type InputRef } from 'antd';
import type { Ref } from 'react';
import { useText } from '../app/i18n.tsx';
import { usePreferences } from '../app/preferences.ts';
import { ReplicaDot } from '../parts/index.ts';
import type { Found } from './client.ts';
import { ERROR, WARNING } from './levels.ts';
import { attemptsOf, INITIAL, nameOf, ofAttempt, type Attempt, type PaneState } from './selection.ts';
import type { LogSource } from './stream.ts';

/** More replicas than this are chosen from a list, not by buttons. */
const MAX_CHIPS = 8;
const TAILS = [1000, 5000, 50_000, 0];

type Change = (patch: Partial<PaneState>) => void;
interface Chooser {
  sources: LogSource[];
  state: PaneState;
  onChange: Change;
}

/** Which replicas: a button each, or a list of many. */
export function ReplicaChooser({ sources, state, onChange }: Chooser) {
  const { logs } = useText();
  const byName = new Map(ofAttempt(sources, state.attempt).map((source) => [nameOf(source, sources), source]));
  const usual = [...byName].filter(([, source]) => !source.auxiliary).map(([name]) => name);
  const chosen = state.chosen ?? usual;
  const choose = (names: string[]) => onChange({ chosen: names.length === usual.length && names.every((name) => usual.includes(name)) ? null : names });
  if (byName.size <= 1 && state.chosen === null) return null;
  if (byName.size > MAX_CHIPS)
    return (
      <Select
        mode="multiple"
        className="log-replicas"
        aria-label={logs.replicas}
        placeholder={logs.replicas}
        value={state.chosen === null ? [] : chosen}
        maxTagCount={1}
        {...(state.chosen === null ? { placeholder: `${logs.allReplicas} (${usual.length})` } : {})}
        options={[...byName].map(([name, source]) => ({
          value: name,
          label: (
            <span className="log-choice">
              <ReplicaDot index={source.color} /> {name}
            </span>
          ),
        }))}
        onChange={(names: string[]) => choose(names.length === 0 ? usual : names)}
      />
    );
  return (
    <div className="log-chips" role="group" aria-label={logs.replicas}>
      {[...byName].map(([name, source]) => {
        const isOn = chosen.includes(name);
        const toggled = isOn ? chosen.filter((other) => other !== name) : [...byName.keys()].filter((other) => other === name || chosen.includes(other));
        return (
          <Tooltip key={name} title={source.auxiliary ? `${source.pod} · ${logs.auxiliary}` : source.pod} mouseEnterDelay={0.6}>
            <button type="button" className={`log-chip${isOn ? ' is-on' : ''}`} aria-pressed={isOn} onClick={() => choose(toggled)} onDoubleClick={() => choose([name])}>
              <ReplicaDot index={source.color} />
              {name}
            </button>
          </Tooltip>
        );
      })}
    </div>
  );
}

/** One replica or all, which attempt, merged or side by side. */
export function LayoutChooser({ sources, state, onChange }: Chooser) {
  const { logs } = useText();
  const attempts = attemptsOf(sources);
  const names = [...new Set(ofAttempt(sources, state.attempt).map((source) => nameOf(source, sources)))];
  const one = state.chosen?.length === 1 ? state.chosen[0]! : null;
  return (
    <>
      {names.length > 1 && names.length <= MAX_CHIPS && (
        <Select
          aria-label={logs.replicas}
          popupMatchSelectWidth={false}
          value={state.chosen === null ? '' : (one ?? logs.someReplicas(state.chosen.length))}
          options={[{ value: '', label: logs.allReplicas }, ...names.map((name) => ({ value: name, label: name }))]}
          onChange={(name: string) => onChange({ chosen: name === '' ? null : [name] })}
        />
      )}
      {attempts.length > 1 && (
        <Select<Attempt>
          aria-label={logs.attempt}
          popupMatchSelectWidth={false}
          value={state.attempt}
          options={[
            { value: 'latest', label: logs.latest },
            ...attempts.map((attempt) => ({ value: attempt, label: `r${attempt}` })),
            { value: 'all', label: logs.allAttempts },
          ]}
          onChange={(attempt) => onChange({ attempt })}
        />
      )}
      {names.length > 1 && (
        <Segmented
          aria-label={logs.layout}
          value={state.layout}
          options={[
            { value: 'merged', icon: <MergeCellsOutlined />, title: logs.merged, label: <span className="log-wide">{logs.merged}</span> },
            { value: 'side', icon: <ColumnWidthOutlined />, title: logs.sideBySide, label: <span className="log-wide">{logs.sideBySide}</span> },
          ]}
          onChange={(layout) => onChange({ layout: layout as PaneState['layout'] })}
        />
      )}
    </>
  );
}

interface FindProps {
  state: PaneState;
  onChange: Change;
  hits: number;
  current: Found | null;
  isSearching: boolean;
  error: string;
  onNext: (direction: 1 | -1) => void;
  input: Ref<InputRef>;
}

/** Find: text, options, how many lines match, next and previous. */
export function FindBar({ state, onChange, hits, current, isSearching, error, onNext, input }: FindProps) {
  const { logs } = useText();
  const count = error ? logs.badRegex : isSearching ? logs.searching : hits === 0 ? logs.noHits : current ? logs.hits(current.hit + 1, hits) : logs.hitCount(hits);
  const toggle = (isOn: boolean, title: string, text: string, patch: Partial<PaneState>) => (
    <Tooltip title={title}>
      <button type="button" className={`log-toggle${isOn ? ' is-on' : ''}`} aria-pressed={isOn} aria-label={title} onClick={() => onChange(patch)}>
        {text}
      </button>
    </Tooltip>
  );
  return (
    <div className="log-find" role="search">
      <Input
        ref={input}
        aria-label={logs.findHint}
        placeholder={logs.find}
        allowClear
        status={error ? 'error' : ''}
        prefix={<SearchOutlined aria-hidden />}
        suffix={
          <>
            {toggle(state.matchCase, logs.matchCase, 'Aa', { matchCase: !state.matchCase })}
            {toggle(state.isRegex, logs.regex, '.*', { isRegex: !state.isRegex })}
          </>
        }
        value={state.find}
        onChange={(event) => onChange({ find: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onNext(event.shiftKey ? -1 : 1);
          else if (event.key === 'Escape') (event.target as HTMLInputElement).blur();
        }}
      />
      {state.find !== '' && (
        <>
          <Button.Group>
            <Button aria-label={logs.previous} title={logs.previous} icon={<UpOutlined />} disabled={hits === 0} onClick={() => onNext(-1)} />
            <Button aria-label={logs.next} title={logs.next} icon={<DownOutlined />} disabled={hits === 0} onClick={() => onNext(1)} />
          </Button.Group>
          <span className={`log-count${error ? ' is-error' : ''}`} role="status" title={error || undefined}>
            {count}
          </span>
          <Checkbox checked={state.onlyMatching} onChange={(event) => onChange({ onlyMatching: event.target.checked })}>
            {logs.only}
          </Checkbox>
          {state.onlyMatching && (
            <InputNumber<number>
              className="log-context"
              aria-label={logs.context}
              title={logs.context}
              prefix="±"
              min={0}
              max={100}
              value={state.context}
              onChange={(context) => onChange({ context: context ?? 0 })}
            />
          )}
        </>
      )}
    </div>
  );
}

function stampAgo(minutes: number): string {
  return new Date(Date.now() - minutes * 60_000).toISOString();
}

/** A stamp for an input of type datetime-local, which has the browser's zone, and back. */
function toLocal(stamp: string): string {
  if (stamp === '') return '';
  const date = new Date(stamp);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function fromLocal(text: string): string {
  const date = new Date(text);
  return text === '' || Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

/** The least level, and a range of time. */
export function FilterBar({ state, onChange }: { state: PaneState; onChange: Change }) {
  const { logs } = useText();
  const { times } = logs;
  const custom = (
    <div className="log-range">
      <label>
        {times.from}
        <input type="datetime-local" step={1} value={toLocal(state.from)} onChange={(event) => onChange({ from: fromLocal(event.target.value) })} />
      </label>
      <label>
        {times.to}
        <input type="datetime-local" step={1} value={toLocal(state.to)} onChange={(event) => onChange({ to: fromLocal(event.target.value) })} />
      </label>
    </div>
  );
  const isTimed = state.from !== '' || state.to !== '';
  return (
    <>
      <Select
        aria-label={logs.level}
        popupMatchSelectWidth={false}
        value={state.level}
        options={[
          { value: 0, label: logs.levels.all },
          { value: WARNING, label: logs.levels.warning },
          { value: ERROR, label: logs.levels.error },
        ]}
        onChange={(level) => onChange({ level })}
      />
      <Select
        aria-label={logs.time}
        popupMatchSelectWidth={false}
        value={isTimed ? 'custom' : 'all'}
        options={[
          { value: 'all', label: times.all },
          { value: '5', label: times.minutes(5) },
          { value: '15', label: times.minutes(15) },
          { value: '60', label: times.hour },
          { value: '1440', label: times.day },
          { value: 'custom', label: times.custom },
        ]}
        onChange={(value) => onChange(value === 'all' ? { from: INITIAL.from, to: INITIAL.to } : { from: stampAgo(value === 'custom' ? 60 : Number(value)), to: '' })}
      />
      {isTimed && custom}
    </>
  );
}

/** How lines look: kept in this browser. */
export function ViewOptions() {
  const { logs } = useText();
  const [preferences, setPreferences] = usePreferences();
  const set = (patch: Partial<typeof preferences.logs>) => setPreferences({ logs: { ...preferences.logs, ...patch } });
  const { wrap, stamps, fontSize, tail } = preferences.logs;
  const content = (
    <div className="log-options">
      <label>
        <span>{logs.wrap}</span>
        <Switch size="small" checked={wrap} onChange={(isOn) => set({ wrap: isOn })} />
      </label>
      <label>
        <span>{logs.stamps}</span>
        <Switch size="small" checked={stamps} onChange={(isOn) => set({ stamps: isOn })} />
      </label>
      <div>
        <span>{logs.fontSize}</span>
        <Button size="small" aria-label={logs.smaller} disabled={fontSize <= 9} onClick={() => set({ fontSize: fontSize - 1 })}>
          −
        </Button>
        <span className="pl-figures">{fontSize}</span>
        <Button size="small" aria-label={logs.larger} disabled={fontSize >= 24} onClick={() => set({ fontSize: fontSize + 1 })}>
          +
        </Button>
      </div>
      <div>
        <span>{logs.tail}</span>
        <Select
          size="small"
          aria-label={logs.tail}
          popupMatchSelectWidth={false}
          value={tail}
          options={TAILS.map((count) => ({ value: count, label: count === 0 ? logs.loadAll : count.toLocaleString() }))}
          onChange={(count) => set({ tail: count })}
        />
      </div>
    </div>
  );
  return (
    <Popover content={content} trigger="click" placement="bottomRight" title={logs.view}>
      <Button icon={<SettingOutlined />} aria-label={logs.view} title={logs.view} />
    </Popover>
  );
}

function downloadPath(source: LogSource): string {
  const query = new URLSearchParams({ uid: source.uid, ...(source.previous ? { previous: 'true' } : {}) });
  return `/api/logs/${[source.namespace, source.pod, source.container].map(encodeURIComponent).join('/')}?${query}`;
}

function download(source: LogSource): void {
  const link = document.createElement('a');
  link.href = downloadPath(source);
  link.download = `${source.pod}-${source.container}.log`;
  document.body.append(link);
  link.click();
  link.remove();
}

export function DownloadButton({ sources, all }: { sources: LogSource[]; all: LogSource[] }) {
  const { logs } = useText();
  if (sources.length <= 1)
    return (
      <Button icon={<DownloadOutlined />} aria-label={logs.download} title={logs.download} disabled={sources.length === 0} onClick={() => sources[0] && download(sources[0])} />
    );
  const items = [
    { key: 'all', label: logs.downloadAll(sources.length) },
    { type: 'divider' as const },
    ...sources.map((source, index) => ({ key: String(index), label: logs.downloadOne(nameOf(source, all)) })),
  ];
  // A browser takes only one download at a time.
  const downloadAll = () => sources.forEach((source, index) => setTimeout(() => download(source), index * 400));
  return (
    <Dropdown trigger={['click']} menu={{ items, onClick: ({ key }) => (key === 'all' ? downloadAll() : download(sources[Number(key)]!)) }}>
      <Button icon={<DownloadOutlined />} aria-label={logs.download} title={logs.download} />
    </Dropdown>
  );
}

export function PopOutButton({ isOut, onChange }: { isOut: boolean; onChange: (isOut: boolean) => void }) {
  const { logs } = useText();
  const title = isOut ? logs.popIn : logs.popOut;
  return <Button icon={isOut ? <CompressOutlined /> : <ExpandOutlined />} aria-label={title} title={title} aria-pressed={isOut} onClick={() => onChange(!isOut)} />;
}
