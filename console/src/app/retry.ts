/** Requests that fail because the network changes under the browser (a VPN, a laptop that wakes up) succeed a moment later. */

const DELAYS = [300, 1000, 3000];

/** Do something again after a moment, as long as it fails in a way that may pass. */
export async function retry<T>(attempt: () => Promise<T>, mayPass: (error: unknown) => boolean = () => true, delays = DELAYS): Promise<T> {
  for (const delay of delays) {
    try {
      return await attempt();
    } catch (error) {
      if (!mayPass(error)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, delay));
  }
  return attempt();
}

/** A part of the console that could not be fetched: the network fails, or the console was replaced by a newer one. */
export class MissingPart extends Error {
  override name = 'MissingPart';
}

/** Import a part of the console, again if that fails. */
export async function fetchPart<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await retry(load);
  } catch (error) {
    throw new MissingPart(error instanceof Error ? error.message : String(error));
  }
}
