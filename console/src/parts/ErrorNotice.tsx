import { Alert, Button } from 'antd';
import type { ReactNode } from 'react';
import { asApiError, type ApiError } from '../app/api.ts';
import { useText, type Words } from '../app/i18n.tsx';
import { CopyButton } from './CopyButton.tsx';

/** What happened and what to do, in the person's language. */
export function explain(error: ApiError, words: Words['common']['errors']): { title: string; hint: string } {
  switch (error.code) {
    case 0:
      return error.reason === 'Unreachable'
        ? { title: words.unreachable, hint: words.unreachableHint }
        : { title: words.other, hint: '' };
    case 401:
      return { title: words.unauthorized, hint: words.unauthorizedHint };
    case 403:
      return { title: words.forbidden, hint: words.forbiddenHint };
    case 404:
      return { title: words.notFound, hint: words.notFoundHint };
    case 409:
      return { title: words.conflict, hint: words.conflictHint };
    case 400:
    case 422:
      return { title: words.invalid, hint: words.invalidHint };
    case 429:
      return { title: words.tooMany, hint: words.unavailableHint };
    case 502:
    case 503:
    case 504:
      return { title: words.unavailable, hint: words.unavailableHint };
    default:
      return error.code >= 500 ? { title: words.internal, hint: words.internalHint } : { title: words.other, hint: '' };
  }
}

function details(error: ApiError): string {
  return JSON.stringify({ code: error.code, reason: error.reason, message: error.message, details: error.details }, null, 2);
}

interface Props {
  error: unknown;
  onRetry?: () => void;
  /** Instead of what the error's code says. */
  title?: string;
  hint?: string;
  extra?: ReactNode;
}

/** An error: what happened, what to do, the server's own sentence, and its causes by field. */
export function ErrorNotice({ error, onRetry, title, hint, extra }: Props) {
  const { common } = useText();
  const fault = asApiError(error);
  const words = explain(fault, common.errors);
  const causes = fault.details?.causes ?? [];
  return (
    <Alert
      type="error"
      showIcon
      role="alert"
      title={title ?? words.title}
      description={
        <div className="pl-error">
          {(hint ?? words.hint) && <p>{hint ?? words.hint}</p>}
          {fault.message && fault.code !== 0 && <p className="pl-error-message">{fault.message}</p>}
          {causes.length > 0 && (
            <ul>
              {causes.map((cause, index) => (
                <li key={index}>
                  {cause.field && <code>{cause.field}</code>} {cause.message}
                </li>
              ))}
            </ul>
          )}
          <div className="pl-error-actions">
            {onRetry && (
              <Button size="small" onClick={onRetry}>
                {common.actions.retry}
              </Button>
            )}
            {extra}
            <CopyButton text={() => details(fault)}>{common.actions.copyDetails}</CopyButton>
          </div>
        </div>
      }
    />
  );
}
