/** The object as the API has it, read only and live. */
import { DownloadOutlined, EditOutlined } from '@ant-design/icons';
import { Button, Checkbox } from 'antd';
import { useEffect, useMemo, useRef, useState } from 'react';
import { stringify } from 'yaml';
import { cloneUrl } from '../../actions/ActionButtons.tsx';
import { api, asApiError, type ApiError } from '../../app/api.ts';
import { useText } from '../../app/i18n.tsx';
import { navigate } from '../../app/router.tsx';
import { CopyButton, ErrorNotice, Loading } from '../../parts/index.ts';
import { YamlView } from './YamlView.tsx';
import type { JobView } from './view.ts';

type KubeObject = { metadata?: Record<string, unknown> } & Record<string, unknown>;

/** As YAML, in the order in which people write it; managed fields only when they are asked for. */
export function yamlOf(object: KubeObject, hasManagedFields: boolean): string {
  const { apiVersion, kind, metadata = {}, spec, status, ...rest } = object;
  const { managedFields, ...plain } = metadata;
  const shown = hasManagedFields && managedFields !== undefined ? { ...plain, managedFields } : plain;
  return stringify({ apiVersion, kind, metadata: shown, ...rest, spec, status }, { lineWidth: 0, aliasDuplicateObjects: false, keepUndefined: false });
}

export function YamlTab({ view, revision }: { view: JobView; revision: string | undefined }) {
  const { job } = useText();
  const words = job.yaml;
  const [object, setObject] = useState<KubeObject>();
  const [error, setError] = useState<ApiError>();
  const [isManaged, setManaged] = useState(false);
  const path = `/k8s/apis/${view.apiVersion}/namespaces/${view.namespace}/${view.kind.toLowerCase()}s/${encodeURIComponent(view.name)}`;
  useEffect(() => {
    const stop = new AbortController();
    api.get<KubeObject>(path, { signal: stop.signal }).then(
      (answer) => {
        setObject(answer);
        setError(undefined);
      },
      (failure: unknown) => {
        if (!stop.signal.aborted) setError(asApiError(failure));
      },
    );
    return () => stop.abort();
  }, [path, revision]);
  const text = useMemo(() => (object === undefined ? undefined : yamlOf(object, isManaged)), [object, isManaged]);
  const link = useRef<HTMLAnchorElement>(null);
  const download = () => {
    const url = URL.createObjectURL(new Blob([text ?? ''], { type: 'application/yaml' }));
    const anchor = link.current;
    if (anchor === null) return;
    anchor.href = url;
    anchor.download = `${view.name}.yaml`;
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  return (
    <div className="pl-stack pl-yaml-tab">
      <div className="pl-row">
        <span className="pl-faint">{words.hint}</span>
        <span className="pl-push pl-row">
          <Checkbox checked={isManaged} onChange={(event) => setManaged(event.target.checked)}>
            {words.managed}
          </Checkbox>
          <CopyButton text={text ?? ''} type="default" size="middle">
            {words.copy}
          </CopyButton>
          <Button icon={<DownloadOutlined />} onClick={download} disabled={text === undefined}>
            {words.download}
          </Button>
          <Button icon={<EditOutlined />} onClick={() => navigate(cloneUrl(view))}>
            {words.edit}
          </Button>
          <a ref={link} className="pl-hidden" aria-hidden tabIndex={-1} href="#download">
            {words.download}
          </a>
        </span>
      </div>
      {error && <ErrorNotice error={error} />}
      {text === undefined ? !error && <Loading rows={16} /> : <YamlView text={text} />}
    </div>
  );
}
