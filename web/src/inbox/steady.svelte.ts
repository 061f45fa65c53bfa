// The list of what waits, held still under a finger: new items wait to be asked for, and after each move taps do not count.
import type { Ask } from "../lib/types";

export const STILL_MS = 600; // to see that the list has moved and what is there now; two taps of a double tap are closer

export class Steady {
  /** The ids that are shown, in their order. */
  shown = $state.raw<string[]>([]);
  /** Those that came since and are not shown yet. */
  fresh = $state.raw<string[]>([]);
  /** The list has moved, so recently that a tap may be meant for what was there before. */
  moving = $state(false);
  private until = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** `now` is the page's clock, in milliseconds. */
  constructor(private now: () => number) {}

  /** What is open has changed: what has gone leaves the list; what is new joins it only where nothing was waiting at all. */
  follow(open: Ask[]): void {
    const ids = open.map((ask) => ask.id);
    if (!this.shown.length && !this.fresh.length) return this.show(ids);
    const kept = this.shown.filter((id) => ids.includes(id));
    this.fresh = ids.filter((id) => !kept.includes(id));
    this.show(kept);
  }

  /** The person asks for what is new. */
  reveal(open: Ask[]): void {
    this.fresh = [];
    this.show(open.map((ask) => ask.id));
  }

  moved(): void {
    this.until = this.now() + STILL_MS;
    this.moving = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.moving = false), STILL_MS);
  }

  /** Whether a tap counts. */
  get still(): boolean {
    return this.now() >= this.until;
  }

  private show(ids: string[]): void {
    if (ids.join() === this.shown.join()) return;
    this.shown = ids;
    this.moved();
  }
}
