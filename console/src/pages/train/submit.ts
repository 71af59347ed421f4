/** Creating an application, with the Secret of its repository where it needs one. */
import { api, ApiError, asApiError } from '../../app/api.ts';

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; uid?: string; labels?: Record<string, string>; generation?: number; resourceVersion?: string };
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
}

export interface Fault {
  path: string;
  reason: string;
  message: string;
}

/** What POST /api/templates/NAME/render answers. */
export interface Rendered {
  app: KubeObject;
  revision: number;
  isNew: boolean;
  objects: KubeObject[];
  faults: Fault[];
  changes?: Difference[];
  jobChanges?: Difference[];
}

export interface Difference {
  path: string;
  old: unknown;
  new: unknown;
}

export interface Credential {
  secret: string;
  user: string;
  password: string;
}

const APP_LABEL = 'paceline.dev/app';
/** The reason of an error: somebody else's Secret has the name. */
export const SECRET_EXISTS = 'SecretExists';

export function appsPath(namespace: string, name = ''): string {
  return `/k8s/apis/paceline.dev/v1beta1/namespaces/${encodeURIComponent(namespace)}/trainingapps${name === '' ? '' : `/${encodeURIComponent(name)}`}`;
}

function secretsPath(namespace: string, name = ''): string {
  return `/k8s/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets${name === '' ? '' : `/${encodeURIComponent(name)}`}`;
}

/** The prefix of the names of the application's objects, which its job has as a label. */
function stemOf({ objects, app }: Rendered): string {
  return objects.map((object) => object.metadata.labels?.[APP_LABEL]).find((label) => label !== undefined) ?? app.metadata.name;
}

/** Create what was rendered. Returns the name of a Secret that could not be tied to the application, or ''. */
export async function createApp(rendered: Rendered, credential: Credential | null): Promise<string> {
  const namespace = rendered.app.metadata.namespace ?? 'default';
  // Before a Secret is made for nothing, ask whether the application would be accepted.
  await api.post(`${appsPath(namespace)}?dryRun=All&fieldValidation=Strict`, rendered.app);
  if (credential) await makeSecret(namespace, stemOf(rendered), credential);
  let created: KubeObject;
  try {
    created = await api.post<KubeObject>(`${appsPath(namespace)}?fieldValidation=Strict`, rendered.app);
  } catch (failure) {
    // The first error counts, not one of the clean-up.
    if (credential) await api.delete(secretsPath(namespace, credential.secret)).catch(() => undefined);
    throw failure;
  }
  return credential && !(await adopt(namespace, credential.secret, created)) ? credential.secret : '';
}

async function makeSecret(namespace: string, stem: string, { secret, user, password }: Credential): Promise<void> {
  try {
    await api.post(secretsPath(namespace), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: secret, namespace, labels: { [APP_LABEL]: stem } },
      stringData: { username: user, password },
    });
  } catch (failure) {
    const fault = asApiError(failure);
    // What the server says may repeat what was sent; of a Secret that is nobody's business.
    const reason = fault.code === 409 ? SECRET_EXISTS : fault.reason;
    throw new ApiError({ code: fault.code, reason, message: `secrets "${secret}": ${fault.reason}` });
  }
}

/** Make the application the owner of its Secret, so that both go together. */
async function adopt(namespace: string, secret: string, app: KubeObject): Promise<boolean> {
  const owner = { apiVersion: app.apiVersion, kind: app.kind, name: app.metadata.name, uid: app.metadata.uid, controller: true, blockOwnerDeletion: true };
  return api.patch(secretsPath(namespace, secret), { metadata: { ownerReferences: [owner] } }).then(
    () => true,
    () => false,
  );
}
