/**
 * Texts on their way into the URL, from where they come back later.
 *
 * What comes back is older than what has been typed since, so it must not replace it; a text from elsewhere (a link, the
 * browser's back button) must.
 */
export class Echoes {
  #sent: string[] = [];

  send(text: string): void {
    this.#sent.push(text);
  }

  /** Whether a text of the URL was sent from here. Texts sent before it will not come any more. */
  accept(text: string): boolean {
    const index = this.#sent.lastIndexOf(text);
    this.#sent = index < 0 ? [] : this.#sent.slice(index + 1);
    return index >= 0;
  }
}
