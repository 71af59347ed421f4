/** Opens an app: wakes it, waits until it is ready, finds out whether the browser reaches its origin, and gets a ticket. */
import { api } from '../app/api.ts';
import type { AppKind } from './service.ts';

export interface AppName {
  kind: AppKind;
  namespace: string;
  name: string;
}

interface Answer {
  ready: boolean;
  url?: string;
  ticket?: string;
}

export interface Opened {
  /** The page on the app's origin that takes the ticket. */
  url: string;
  ticket: string;
}

/** Messages of our own pages on the app's origin to the console around them. */
export const MESSAGE_TYPE = 'paceline.embedded-app';
export type AppMessage = 'reachable' | 'open' | 'refused';

const PING_MILLISECONDS = 5000;

/** The message in an event, if it comes from this window at this origin. */
export function appMessage(event: Pick<MessageEvent, 'origin' | 'source' | 'data'>, origin: string, source: unknown): AppMessage | null {
  if (event.origin !== origin || event.source !== source) return null;
  const data = event.data as { type?: unknown; state?: unknown } | null;
  if (typeof data !== 'object' || data?.type !== MESSAGE_TYPE) return null;
  return data.state === 'reachable' || data.state === 'open' || data.state === 'refused' ? data.state : null;
}

/** Wait until an app is ready, waking it if it sleeps. A later wait does not wake it again: somebody may have paused it meanwhile. */
export async function openApp(app: AppName, signal: AbortSignal): Promise<Opened> {
  for (let wake = true; ; wake = false) {
    const answer = await api.post<Answer>('/api/embed', { ...app, wake }, { signal });
    if (answer.ready && answer.url && answer.ticket) return { url: answer.url, ticket: answer.ticket };
    signal.throwIfAborted();
  }
}

/** Whether the browser resolves the names of apps: a page of ours there answers from a hidden frame. */
export function reaches(origin: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const frame = document.createElement('iframe');
    const finish = (isReached: boolean) => {
      clearTimeout(timer);
      window.removeEventListener('message', hear);
      signal.removeEventListener('abort', abort);
      frame.remove();
      resolve(isReached);
    };
    const hear = (event: MessageEvent) => {
      if (appMessage(event, origin, frame.contentWindow) === 'reachable') finish(true);
    };
    const abort = () => finish(false);
    const timer = setTimeout(() => finish(false), PING_MILLISECONDS);
    window.addEventListener('message', hear);
    signal.addEventListener('abort', abort);
    frame.hidden = true;
    frame.setAttribute('sandbox', 'allow-scripts allow-same-origin');
    frame.src = `${origin}/.paceline/ping`;
    document.body.append(frame);
  });
}

/** Whether apps can be shown in a frame of this page: only below its own host does the browser send their cookies. */
export function canFrame(url: string, pageHost: string): boolean {
  const { host } = new URL(url);
  return host.slice(host.indexOf('.') + 1) === pageHost;
}
