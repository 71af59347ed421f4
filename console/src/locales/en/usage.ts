import { plural } from './plural.ts';

export const usage = {
  fields: {
    cpu: 'CPU',
    memory: 'Memory',
    gpu: 'GPU utilisation',
    gpuMemory: 'GPU memory',
    diskRead: 'Storage read',
    diskWrite: 'Storage write',
    networkIn: 'Network receive',
    networkOut: 'Network send',
  },
  units: {
    cpu: 'cores',
    memory: 'bytes in use',
    gpu: 'busy GPUs',
  },
  perSecond: 'bytes per second',
  ranges: { run: 'Whole run', '15m': '15 min', '1h': '1 h', '6h': '6 h', '1d': '1 day', '7d': '7 days' },
  sources: {
    node: 'Measured by the node every 5 s.',
    prometheus: 'From Prometheus.',
    metrics: 'From the metrics API, sampled while this page is open.',
  },
  marks: { request: (amount: string) => `request ${amount}`, limit: (amount: string) => `limit ${amount}` },
  most: (amount: string) => `max ${amount}`,
  more: (count: number) => `${plural(count, 'more replica')} in the table below`,
  chartOf: (field: string) => `${field} over time; the figures are in the table below`,
  figures: 'Figures',
  figuresHint: 'Mean / maximum in the time that is shown.',
  none: 'Nothing was measured in this time',
  noneHint: 'A container is measured as soon as it runs. Choose a longer time, or wait a few seconds.',
  noMetrics: 'This cluster has no metrics of these pods: install metrics-server, or start the console with --prometheus.',
  lastHours: (hours: number) => `The last ${plural(hours, 'hour')}.`,
};
