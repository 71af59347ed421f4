/** The last lines of a running job's leader, asked for every few seconds: a flood of lines must not come here. */
import { useEffect, useState } from 'react';
import { live } from '../../app/hooks.ts';
import type { JobView } from '../job/view.ts';

const LINES = 60;
const EVERY = 5000;
const STAMP = /^\S+ /gm;

export function useLogTail(view: Pick<JobView, 'namespace' | 'logs'> | undefined, isRunning: boolean): string {
  const [text, setText] = useState('');
  const running = view?.logs.filter((log) => log.isRunning && !log.isStage) ?? [];
  const leader = running.find((log) => log.isLeader) ?? running[0];
  const { pod, uid, container } = leader ?? {};
  const namespace = view?.namespace;
  useEffect(() => {
    if (!isRunning || namespace === undefined || pod === undefined || uid === undefined || container === undefined) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let stop = () => {};
    const ask = () => {
      const decoder = new TextDecoder();
      let lines = '';
      stop = live.subscribeLog(
        { namespace, pod, uid, container, follow: false, tail: LINES },
        (bytes) => {
          lines += decoder.decode(bytes, { stream: true });
        },
        (end) => {
          if (end.error === undefined) setText(lines.replace(STAMP, ''));
          timer = setTimeout(ask, EVERY);
        },
      );
    };
    ask();
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [isRunning, namespace, pod, uid, container]);
  return text;
}
