import { useEffect, useReducer, useRef, useState } from 'react';
import { live } from '../app/hooks.ts';
import { LogClient, type WorkerPort } from './client.ts';
import workerUrl from './log.worker.ts?worker';
import { keyOf, LogStream, type LogSource } from './stream.ts';

interface Shared {
  client: LogClient;
  /** Called with the client that takes its place when an expression has kept its worker busy for ever. */
  users: Set<(client: LogClient) => void>;
}

let shared: Shared | null = null;

function makeClient(): LogClient {
  const client = new LogClient(new Worker(workerUrl) as unknown as WorkerPort);
  client.onHang = () => {
    client.terminate();
    if (shared?.client !== client) return;
    shared.client = makeClient();
    for (const user of shared.users) user(shared.client);
  };
  return client;
}

/** The worker of this tab; it ends with the last pane. `onHang` is called when it had to be ended before. */
export function useLogClient(onHang: () => void): LogClient | null {
  const [client, setClient] = useState<LogClient | null>(null);
  const latest = useRef(onHang);
  latest.current = onHang;
  useEffect(() => {
    shared ??= { client: makeClient(), users: new Set() };
    const mine = shared;
    const replace = (next: LogClient) => {
      latest.current();
      setClient(next);
    };
    mine.users.add(replace);
    setClient(mine.client);
    return () => {
      mine.users.delete(replace);
      if (mine.users.size > 0) return;
      mine.client.terminate();
      if (shared === mine) shared = null;
    };
  }, []);
  return client;
}

/** Streams of the given logs, in their order: opened and closed as they come and go. */
export function useStreams(client: LogClient | null, sources: LogSource[], tail: number): LogStream[] {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const streams = useRef(new Map<string, LogStream>());
  const [shown, setShown] = useState<LogStream[]>([]);
  const keys = sources.map(keyOf).join('\n');
  const latest = useRef({ sources, tail });
  latest.current = { sources, tail };
  useEffect(() => {
    if (!client) return;
    const { sources, tail } = latest.current;
    const wanted = new Map(sources.map((source) => [keyOf(source), source]));
    for (const [key, stream] of streams.current)
      if (!wanted.has(key)) {
        stream.stop();
        streams.current.delete(key);
      }
    for (const [key, source] of wanted)
      if (!streams.current.has(key)) {
        const stream = new LogStream(source, client, live, redraw);
        streams.current.set(key, stream);
        stream.start(tail > 0 ? tail : undefined);
      }
    setShown([...wanted.keys()].map((key) => streams.current.get(key)!));
  }, [client, keys]);
  useEffect(() => {
    for (const source of sources) {
      const stream = streams.current.get(keyOf(source));
      if (stream) stream.isEnded = source.ended;
    }
  }, [sources]);
  useEffect(() => {
    const all = streams.current;
    return () => {
      for (const stream of all.values()) stream.stop();
      all.clear();
    };
  }, [client]);
  return shown;
}
