declare module '*.css';
declare module '*.woff2' {
  const url: string;
  export default url;
}
declare module '*.svg' {
  const url: string;
  export default url;
}
/** The address of a worker that the build bundles by itself: `new Worker(url)`. */
declare module '*?worker' {
  const url: string;
  export default url;
}

/** Only what app/guards.ts needs of Trusted Types; TypeScript's DOM library does not have them yet. */
interface Window {
  trustedTypes?: {
    createPolicy(
      name: string,
      rules: { createHTML?: (text: string) => string | null; createScriptURL?: (url: string) => string | null },
    ): unknown;
  };
}
