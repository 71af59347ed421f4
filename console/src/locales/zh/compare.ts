import type { compare as en } from '../en/compare.ts';

export const compare: typeof en = {
  title: '对比',
  hint: '选择 2 到 50 个作业，并排对比它们的配置、结果和曲线。',
  add: '添加作业',
  none: '选择要对比的作业',
  tooMany: (most) => `最多可对比 ${most} 个作业，现显示前 ${most} 个。`,
  onlyDifferent: '仅显示差异',
  values: '配置',
  field: '字段',
  same: '这些作业在此没有差异。',
  results: '结果',
  curves: '曲线',
  best: '最佳',
  remove: (name) => `移除 ${name}`,
  gone: '该作业已不存在。',
  clone: '克隆并修改',
  download: 'CSV',
  differs: (count) => `${count} 个字段不同`,
  action: '对比',
  rows: {
    phase: '状态',
    duration: '运行时长',
  },
};
