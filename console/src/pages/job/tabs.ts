export const TABS = ['summary', 'replicas', 'logs', 'resources', 'curves', 'events', 'yaml', 'terminal'] as const;
export type Tab = (typeof TABS)[number];

export function readTab(value: string | undefined): Tab {
  return TABS.find((tab) => tab === value) ?? 'summary';
}
