/**
 * Starts the console, which comes in several files: if one cannot be fetched because the network changes at this moment, the page
 * is loaded again. Browsers may remember that a module failed, so importing it again would not do.
 */
const KEY = 'paceline.starts';
const MAX_STARTS = 8;
const APOLOGY = 'The console could not be loaded. Check the network and reload the page. 控制台无法加载，请检查网络后重新加载页面。';

async function start(): Promise<void> {
  try {
    await import('./start.tsx');
    sessionStorage.removeItem(KEY);
  } catch (error) {
    console.warn(error);
    const starts = Number(sessionStorage.getItem(KEY) ?? 0) + 1;
    sessionStorage.setItem(KEY, String(starts));
    if (starts < MAX_STARTS) setTimeout(() => location.reload(), 400 * starts);
    else document.body.append(APOLOGY);
  }
}

void start();
