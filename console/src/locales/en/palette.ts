import { plural } from './plural.ts';

export const palette = {
  title: 'Search and commands',
  short: 'Search',
  field: 'Search jobs, pages and actions',
  list: 'Results',
  groups: { actions: 'This job', pages: 'Pages', jobs: 'Jobs', apps: 'Applications', notebooks: 'Notebooks', tensorboards: 'TensorBoard', views: 'Saved views' },
  logsOf: (name: string) => `Logs of ${name}`,
  none: 'Nothing matches',
  loading: 'Loading…',
  count: (count: number) => plural(count, 'result'),
  keys: { move: 'choose', choose: 'open', close: 'close' },
};
