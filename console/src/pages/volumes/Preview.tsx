/** A file, looked at: pictures as data, everything else as text. Nothing of it runs or is rendered as a page. */
import { DownloadOutlined } from '@ant-design/icons';
import { Alert, Button, Modal } from 'antd';
import { useEffect, useState } from 'react';
import { ApiError, asApiError } from '../../app/api.ts';
import { useText } from '../../app/i18n.tsx';
import { bytesText, ErrorNotice, Loading } from '../../parts/index.ts';
import { filesUrl, readableName, type ClaimRef } from '../../volumes/client.ts';
import { base64, imageType, textOf } from './kinds.ts';

const TEXT_BYTES = 256 * 1024;
const IMAGE_BYTES = 8 * 1024 * 1024;

type Shown = { form: 'text'; text: string; isCut: boolean } | { form: 'image'; source: string } | { form: 'large' } | { form: 'binary' };

async function fetchBytes(url: string, most: number, signal: AbortSignal): Promise<{ bytes: Uint8Array; size: number }> {
  const response = await fetch(url, { headers: { Range: `bytes=0-${most - 1}` }, credentials: 'same-origin', signal });
  if (!response.ok) {
    const body = (await response.json().catch(() => ({}))) as { message?: string };
    throw new ApiError({ code: response.status, message: body.message ?? response.statusText });
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const size = Number(response.headers.get('Content-Range')?.split('/')[1] ?? bytes.length);
  return { bytes, size };
}

async function look(url: string, signal: AbortSignal): Promise<Shown> {
  const { bytes, size } = await fetchBytes(url, TEXT_BYTES, signal);
  const type = imageType(bytes);
  if (type !== null) {
    if (size > IMAGE_BYTES) return { form: 'large' };
    const whole = size > bytes.length ? (await fetchBytes(url, IMAGE_BYTES, signal)).bytes : bytes;
    return { form: 'image', source: `data:${type};base64,${base64(whole)}` };
  }
  const text = textOf(bytes);
  return text === null ? { form: 'binary' } : { form: 'text', text, isCut: size > bytes.length };
}

export function Preview({ claim, path, onClose }: { claim: ClaimRef; path: string; onClose: () => void }) {
  const { volumes } = useText();
  const [shown, setShown] = useState<Shown>();
  const [error, setError] = useState<ApiError>();
  const url = filesUrl(claim, 'file', { path });
  const name = readableName(path.split('/').at(-1) ?? path);
  useEffect(() => {
    const abort = new AbortController();
    setShown(undefined);
    setError(undefined);
    look(url, abort.signal).then(
      (next) => !abort.signal.aborted && setShown(next),
      (failure: unknown) => !abort.signal.aborted && setError(asApiError(failure)),
    );
    return () => abort.abort();
  }, [url]);
  return (
    <Modal open title={name} width={900} onCancel={onClose} footer={<Button icon={<DownloadOutlined />} href={url} download>{volumes.download}</Button>}>
      <div className="pl-stack pl-preview" data-preview={shown?.form}>
        {error && <ErrorNotice error={error} />}
        {shown === undefined && !error && <Loading rows={10} />}
        {shown?.form === 'text' && (
          <>
            {shown.isCut && <Alert type="info" showIcon title={volumes.tooLarge(bytesText(TEXT_BYTES))} />}
            <pre tabIndex={0}>{shown.text}</pre>
          </>
        )}
        {shown?.form === 'image' && <img src={shown.source} alt={name} />}
        {shown?.form === 'large' && <p className="pl-soft">{volumes.imageTooLarge(bytesText(IMAGE_BYTES))}</p>}
        {shown?.form === 'binary' && <p className="pl-soft">{volumes.binary}</p>}
      </div>
    </Modal>
  );
}
