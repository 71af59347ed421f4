/** Requests to the console's back end and, below /k8s, to the Kubernetes API. */
import { retry } from './retry.ts';

export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
  [key: string]: unknown;
}

/** A refusal, as Kubernetes words it: HTTP code, reason, message and details. Code 0: the console did not answer. */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;

  constructor(status: { code?: number; reason?: string; message?: string; details?: StatusDetails }) {
    super(status.message ?? status.reason ?? 'request failed');
    this.name = 'ApiError';
    this.code = status.code ?? 0;
    this.reason = status.reason ?? '';
    this.details = status.details;
  }
}

/** What any thrown value says, as an ApiError. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError({ code: 0, reason: 'Error', message: error instanceof Error ? error.message : String(error) });
}

export function isUnreachable(error: unknown): boolean {
  return error instanceof ApiError && error.reason === 'Unreachable';
}

interface Options {
  signal?: AbortSignal;
  /** Content type of the body; a patch is a merge patch unless this says otherwise. */
  type?: string;
}

type Listener = () => void;
const unauthorized = new Set<Listener>();

/** Call a function whenever a request is answered with 401; returns how to stop that. */
export function onUnauthorized(listener: Listener): () => void {
  unauthorized.add(listener);
  return () => unauthorized.delete(listener);
}

async function request<T>(method: string, path: string, body: unknown, options: Options = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (method !== 'GET') headers['X-Paceline'] = '1';
  if (body !== undefined)
    headers['Content-Type'] = options.type ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json');
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers,
      credentials: 'same-origin',
      cache: 'no-store',
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(options.signal ? { signal: options.signal } : {}),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError({ code: 0, reason: 'Unreachable', message: error instanceof Error ? error.message : String(error) });
  }
  return answer<T>(response);
}

async function answer<T>(response: Response): Promise<T> {
  const text = await response.text();
  const isJson = response.headers.get('Content-Type')?.includes('json') ?? false;
  if (response.ok) return (isJson && text !== '' ? JSON.parse(text) : text) as T;
  if (response.status === 401) for (const listener of unauthorized) listener();
  throw failure(response, isJson ? text : '', text);
}

function failure(response: Response, json: string, text: string): ApiError {
  const fallback = { code: response.status, reason: response.statusText, message: text.slice(0, 500) || response.statusText };
  try {
    return new ApiError({ ...fallback, ...(JSON.parse(json) as object), code: response.status });
  } catch {
    return new ApiError(fallback);
  }
}

export const api = {
  // Reading may be repeated; what changes something may not.
  get: <T>(path: string, options?: Options) =>
    retry(() => request<T>('GET', path, undefined, options), isUnreachable, [300]),
  post: <T>(path: string, body?: unknown, options?: Options) => request<T>('POST', path, body ?? {}, options),
  put: <T>(path: string, body: unknown, options?: Options) => request<T>('PUT', path, body, options),
  patch: <T>(path: string, body: unknown, options?: Options) => request<T>('PATCH', path, body, options),
  delete: <T>(path: string, body?: unknown, options?: Options) => request<T>('DELETE', path, body, options),
};
