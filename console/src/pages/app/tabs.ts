import { pathOf } from '../../app/router.tsx';

export const TABS = ['overview', 'services', 'containers', 'logs', 'routes', 'revisions', 'values'] as const;
export type Tab = (typeof TABS)[number];

export function readTab(value: string | undefined): Tab {
  return TABS.find((tab) => tab === value) ?? 'overview';
}

export function appUrl({ namespace, name }: { namespace: string; name: string }, tab?: Tab): string {
  return pathOf('apps', namespace, name, ...(tab ? [tab] : []));
}

/** The log of one service of the current revision. */
export function serviceLogUrl(app: { namespace: string; name: string }, service: string): string {
  return `${appUrl(app, 'logs')}?${new URLSearchParams({ replicas: service }).toString()}`;
}
