/** The actions on a TensorBoard or notebook, done by the console's back end as the person. */
import { api } from '../app/api.ts';
import type { AppName } from './embed.ts';

export function suspend(app: AppName): Promise<unknown> {
  return api.post('/api/actions', { action: 'suspend', ...app });
}

export function remove(app: AppName): Promise<unknown> {
  return api.post('/api/actions', { action: 'delete', ...app });
}
