import type { Words } from '../en/index.ts';
import { actions } from './actions.ts';
import { apps } from './apps.ts';
import { common } from './common.ts';
import { compare } from './compare.ts';
import { create } from './create.ts';
import { curves } from './curves.ts';
import { history } from './history.ts';
import { interactive } from './interactive.ts';
import { job } from './job.ts';
import { jobs } from './jobs.ts';
import { logs } from './logs.ts';
import { overview } from './overview.ts';
import { palette } from './palette.ts';
import { reasons } from './reasons.ts';
import { settings } from './settings.ts';
import { templates } from './templates.ts';
import { volumes } from './volumes.ts';
import { usage } from './usage.ts';

/** Every text of the page in Chinese. A missing word does not compile. */
export const words: Words = {
  lang: 'zh-CN',
  actions,
  apps,
  common,
  compare,
  create,
  curves,
  history,
  interactive,
  job,
  jobs,
  logs,
  overview,
  palette,
  reasons,
  settings,
  templates,
  volumes,
  usage,
};
