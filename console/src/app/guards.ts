/**
 * What lets libraries live under the page's Content Security Policy. Imported first, before anything creates an element.
 *
 * - Every `<style>` that a script creates gets the page's nonce (xterm and antd's drawers forget it).
 * - The default Trusted Types policy passes only text without markup (antd writes CSS by `innerHTML`) and only our own workers.
 */
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';

const createElement = document.createElement.bind(document);
document.createElement = ((name: string, options?: ElementCreationOptions) => {
  const element = createElement(name, options);
  if (nonce !== '' && element instanceof HTMLStyleElement) element.nonce = nonce;
  return element;
}) as typeof document.createElement;

export function plainText(text: string): string | null {
  return text.includes('<') ? null : text;
}

export function ownScript(url: string): string | null {
  const target = new URL(url, location.href);
  return target.origin === location.origin && target.pathname.startsWith('/assets/') ? url : null;
}

window.trustedTypes?.createPolicy('default', { createHTML: plainText, createScriptURL: ownScript });
