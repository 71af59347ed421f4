/** Announces the end of watched jobs, on whichever page the person is: in the page and, where allowed, by the browser. */
import { App, Button } from 'antd';
import { useEffect, useMemo, useRef } from 'react';
import { useRows } from '../app/hooks.ts';
import { useText, type Words } from '../app/i18n.tsx';
import { navigate, pathOf } from '../app/router.tsx';
import { StatusIcon, toneOf } from '../parts/StatusTag.tsx';
import { endsIn, takeWatch, useWatches, type End, type Watch } from './store.ts';

/** A tab that is seen announces first: hidden ones wait, in milliseconds. */
const HIDDEN_DELAY = 2000;
/** How long a notification stays in a page that is seen, in seconds; in a hidden one, and of a failed job, it stays until it is closed. */
const STAY = 15;

export function Watcher() {
  const watches = useWatches();
  const namespaces = useMemo(() => [...new Set(watches.map(({ namespace }) => namespace))].sort(), [watches]);
  return namespaces.map((namespace) => <NamespaceWatcher key={namespace} namespace={namespace} />);
}

function NamespaceWatcher({ namespace }: { namespace: string }) {
  const watches = useWatches();
  const { data: rows } = useRows(namespace);
  const seen = useRef(new Set<string>());
  const pending = useRef(new Set<string>());
  const announce = useAnnouncement();
  const announcement = useRef(announce);
  useEffect(() => {
    announcement.current = announce;
  });
  useEffect(() => {
    if (rows === undefined) return;
    const here = watches.filter((watch) => watch.namespace === namespace);
    for (const end of endsIn(rows, here, seen.current)) {
      const { uid } = end.watch;
      if (pending.current.has(uid)) continue;
      pending.current.add(uid);
      const take = async () => {
        if (await takeWatch(uid)) announcement.current(end);
        pending.current.delete(uid);
      };
      setTimeout(() => void take(), document.hidden ? HIDDEN_DELAY : 0);
    }
  }, [rows, watches, namespace]);
  return null;
}

/** How a job ended, in the words that its page and the list have for it. */
export function sayEnd({ watch, row }: End, { common, job }: Pick<Words, 'common' | 'job'>): { title: string; detail: string } {
  if (row === null) return { title: watch.name, detail: job.deleted };
  const phases: Record<string, string> = common.phases;
  return { title: job.phaseChanged(watch.name, phases[row.phase] ?? row.phase), detail: row.reason };
}

function useAnnouncement(): (end: End) => void {
  const t = useText();
  const { notification } = App.useApp();
  return (end) => {
    const { watch, row } = end;
    const { title, detail } = sayEnd(end, t);
    const open = () => {
      notification.destroy(watch.uid);
      navigate(urlOf(watch));
    };
    notification.open({
      key: watch.uid,
      title,
      description: row === null ? detail : <Reason watch={watch} first={detail} />,
      icon: <StatusIcon tone={toneOf(row?.phase ?? '')} />,
      duration: document.hidden || row?.phase === 'Failed' ? false : STAY,
      role: 'status',
      className: 'pl-watch-end',
      actions: row !== null && (
        <Button size="small" onClick={open}>
          {t.actions.open}
        </Button>
      ),
    });
    showByBrowser(title, detail, watch, row === null ? undefined : open);
    markTitle();
  };
}

/** Why a job ended. The line of its log that says most comes a moment after its phase. */
function Reason({ watch, first }: { watch: Watch; first: string }) {
  const { data: rows } = useRows(watch.namespace);
  return <span translate="no">{rows?.find(({ uid }) => uid === watch.uid)?.reason ?? first}</span>;
}

function urlOf({ namespace, kind, name }: Watch): string {
  return pathOf('jobs', namespace, kind, name);
}

function showByBrowser(title: string, body: string, watch: Watch, open: (() => void) | undefined): void {
  if (typeof Notification === 'undefined' || Notification.permission !== 'granted') return;
  try {
    const shown = new Notification(title, { body, tag: watch.uid });
    shown.onclick = () => {
      window.focus();
      open?.();
      shown.close();
    };
  } catch {
    // Android's browsers show notifications of service workers only.
  }
}

/** Mark the title of a hidden tab until somebody looks. */
function markTitle(): void {
  if (!document.hidden) return;
  const mark = '● ';
  if (!document.title.startsWith(mark)) document.title = mark + document.title;
  const clear = () => {
    if (document.hidden) return;
    document.title = document.title.replace(mark, '');
    document.removeEventListener('visibilitychange', clear);
  };
  document.addEventListener('visibilitychange', clear);
}
