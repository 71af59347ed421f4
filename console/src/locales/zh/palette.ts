import type { palette as en } from '../en/palette.ts';

export const palette: typeof en = {
  title: '搜索与命令',
  short: '搜索',
  field: '搜索作业、页面和操作',
  list: '结果',
  groups: { actions: '当前作业', pages: '页面', jobs: '作业', apps: '应用', notebooks: 'Notebook', tensorboards: 'TensorBoard', views: '已保存的视图' },
  logsOf: (name) => `${name} 的日志`,
  none: '没有匹配的结果',
  loading: '正在加载…',
  count: (count) => `${count} 个结果`,
  keys: { move: '选择', choose: '打开', close: '关闭' },
};
