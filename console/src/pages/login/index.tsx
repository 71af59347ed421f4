import { Alert, Button, Input } from 'antd';
import { Fragment, useEffect, useRef, useState, type ReactNode, type SubmitEvent } from 'react';
import { api, asApiError, isUnreachable, type ApiError } from '../../app/api.ts';
import { useTitle } from '../../app/hooks.ts';
import { useText } from '../../app/i18n.tsx';
import { setLoginCode, useLoginCode } from '../../app/loginCode.ts';
import { usePreferences } from '../../app/preferences.ts';
import { retry } from '../../app/retry.ts';
import { navigate, useRoute } from '../../app/router.tsx';
import { useSession } from '../../app/session.tsx';
import { Command, ErrorNotice, Mark } from '../../parts/index.ts';

/** Where to go after the login: only to a page of ours. */
export function nextPage(search: string): string {
  const next = new URLSearchParams(search).get('next') ?? '/';
  return /^\/(?![/\\])/.test(next) ? next : '/';
}

interface LoginOptions {
  /** Whether `paceline ui` can log in here; else everybody brings a token. */
  codes: boolean;
  cluster: string;
  server: string;
  /** SHA-256 of the cluster's certificate authority. */
  fingerprint: string;
}

/** How one logs in at this console; `undefined` until it says so. */
function useLoginOptions(): LoginOptions | undefined {
  const [options, setOptions] = useState<LoginOptions>();
  useEffect(() => {
    let isCurrent = true;
    retry(() => api.get<LoginOptions>('/api/login'), isUnreachable).then((answer) => isCurrent && setOptions(answer), () => undefined);
    return () => {
      isCurrent = false;
    };
  }, []);
  return options;
}

/** Which cluster gets the token: people compare it before they hand one over. */
function ClusterFacts({ options }: { options: LoginOptions }) {
  const words = useText().settings.login;
  return (
    <dl className="pl-login-cluster">
      <dt>{words.cluster}</dt>
      <dd>{[options.cluster, options.server].filter(Boolean).join(' · ')}</dd>
      {options.fingerprint !== '' && (
        <>
          <dt>{words.fingerprint}</dt>
          <dd>
            <code>{wrappable(options.fingerprint)}</code>
          </dd>
        </>
      )}
    </dl>
  );
}

function CodeLogin({ code }: { code: string }) {
  const t = useText();
  const { login } = useSession();
  const { page } = useRoute();
  const [error, setError] = useState<ApiError>();
  const isSent = useRef(false);
  useEffect(() => {
    if (isSent.current) return;
    isSent.current = true;
    // A code that did not reach the server is still good.
    retry(() => login({ code }), isUnreachable)
      .then(() => {
        setLoginCode('');
        if (page === 'login') navigate(nextPage(location.search), { replace: true });
      })
      .catch((failure: unknown) => setError(asApiError(failure)));
  }, [code, login, page]);
  if (error === undefined) return <p role="status">{t.settings.login.checking}</p>;
  if (error.code === 0) return <ErrorNotice error={error} />;
  return <Alert type="warning" showIcon role="alert" title={t.settings.login.codeRefused} description={t.settings.login.codeRefusedHint} />;
}

function TokenLogin() {
  const t = useText();
  const words = t.settings.login;
  const { login } = useSession();
  const { page } = useRoute();
  const [token, setToken] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const [isMissing, setMissing] = useState(false);
  const submit = async (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setMissing(token.trim() === '');
    if (token.trim() === '') return;
    setBusy(true);
    setError(undefined);
    try {
      await login({ token: token.trim() });
      if (page === 'login') navigate(nextPage(location.search), { replace: true });
    } catch (failure) {
      setError(asApiError(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)} className="pl-stack">
      <p>{words.tokenHint}</p>
      <Command>kubectl create token NAME</Command>
      <label className="pl-field">
        <span>{words.tokenLabel}</span>
        <Input.Password value={token} onChange={(event) => setToken(event.target.value)} placeholder={words.tokenPlaceholder} autoComplete="off" spellCheck={false} status={isMissing ? 'error' : ''} />
        {isMissing && <small role="alert">{words.tokenMissing}</small>}
      </label>
      {error && (error.code === 0 ? <ErrorNotice error={error} /> : <Alert type="error" showIcon role="alert" title={words.tokenRefused} description={words.tokenRefusedHint} />)}
      <Button type="primary" htmlType="submit" block loading={isBusy}>
        {words.submit}
      </Button>
      <p className="pl-faint">{words.tokenNotice}</p>
    </form>
  );
}

/** A fingerprint that breaks between its bytes. */
function wrappable(fingerprint: string): ReactNode {
  return fingerprint.split(':').map((byte, index) => (
    <Fragment key={index}>
      {index > 0 && (
        <>
          :<wbr />
        </>
      )}
      {byte}
    </Fragment>
  ));
}

export default function LoginPage() {
  const t = useText();
  const words = t.settings.login;
  const { state, error, refresh } = useSession();
  const { page } = useRoute();
  const [{ language }, set] = usePreferences();
  const code = useLoginCode();
  const options = useLoginOptions();
  useTitle(words.title);
  useEffect(() => {
    if (state === 'in' && page === 'login' && code === '') navigate(nextPage(location.search), { replace: true });
  }, [state, page, code]);
  // Another tab may log in: `paceline ui` opens a new one.
  useEffect(() => {
    const look = () => void refresh();
    window.addEventListener('focus', look);
    return () => window.removeEventListener('focus', look);
  }, [refresh]);
  return (
    <div className={state === 'expired' ? 'pl-login pl-login-over' : 'pl-login'} data-page="login">
      <main className="pl-login-card">
        <div className="pl-login-brand">
          <Mark size={40} />
          <div>
            <strong>{t.common.product}</strong>
            <span>{words.tagline}</span>
          </div>
          <Button type="text" lang={language === 'en' ? 'zh-CN' : 'en'} onClick={() => set({ language: language === 'en' ? 'zh' : 'en' })}>
            {language === 'en' ? '中文' : 'English'}
          </Button>
        </div>
        {state === 'expired' && <Alert type="info" showIcon title={words.expiredTitle} description={words.expiredHint} />}
        {state === 'down' && <ErrorNotice error={error} onRetry={() => void refresh()} />}
        {code !== '' && <CodeLogin key={code} code={code} />}
        {options?.codes === true && (
          <>
            <section className="pl-stack">
              <h1>{words.embeddedTitle}</h1>
              <Command>paceline ui</Command>
              <p>{words.embeddedHint}</p>
            </section>
            <details>
              <summary>{words.tokenTitle}</summary>
              <TokenLogin />
            </details>
          </>
        )}
        {options?.codes === false && (
          <section className="pl-stack">
            <h1>{words.tokenTitle}</h1>
            <ClusterFacts options={options} />
            <TokenLogin />
          </section>
        )}
      </main>
    </div>
  );
}
