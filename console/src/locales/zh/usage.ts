import type { usage as en } from '../en/usage.ts';

export const usage: typeof en = {
  fields: {
    cpu: 'CPU',
    memory: '内存',
    gpu: 'GPU 利用率',
    gpuMemory: '显存',
    diskRead: '存储读取',
    diskWrite: '存储写入',
    networkIn: '接收带宽',
    networkOut: '发送带宽',
  },
  units: {
    cpu: '核',
    memory: '已用字节',
    gpu: '忙碌的 GPU 数',
  },
  perSecond: '字节/秒',
  ranges: { run: '整个运行', '15m': '15 分钟', '1h': '1 小时', '6h': '6 小时', '1d': '1 天', '7d': '7 天' },
  sources: {
    node: '由节点每 5 秒测量。',
    prometheus: '来自 Prometheus。',
    metrics: '来自指标 API，在此页面打开期间采样。',
  },
  marks: { request: (amount) => `请求量 ${amount}`, limit: (amount) => `上限 ${amount}` },
  most: (amount) => `最大 ${amount}`,
  more: (count) => `另外 ${count} 个副本见下表`,
  chartOf: (field) => `${field}随时间的变化；数值见下表`,
  figures: '数值',
  figuresHint: '所示时间内的平均值 / 最大值。',
  none: '这段时间没有测量数据',
  noneHint: '容器一运行就会开始测量。请选择更长的时间，或稍等几秒。',
  noMetrics: '此集群没有这些 Pod 的指标：请安装 metrics-server，或用 --prometheus 启动控制台。',
  lastHours: (hours) => `最近 ${hours} 小时。`,
};
