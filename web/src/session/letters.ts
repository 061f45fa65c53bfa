// The chosen font size of a terminal, and touch gestures that move and zoom it.
import type { Terminal } from "@xterm/xterm";

const KEY = "letters";
export const SMALLEST = 6; // a whole wide terminal at a glance
export const LARGEST = 28; // a few words, for tired eyes
export const READABLE_PX = 11; // of a terminal's letters on a phone, at arm's length

/** Whether the page is on glass that fingers move things about on. */
export function onGlass(): boolean {
  return matchMedia("(pointer: coarse)").matches || matchMedia("(max-width: 719px)").matches;
}

/** The size that was chosen in this browser; null where none was. */
export function chosen(): number | null {
  const px = Number(localStorage.getItem(KEY));
  return px >= SMALLEST && px <= LARGEST ? px : null;
}

export function choose(px: number | null): number | null {
  if (px === null) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, String(Math.min(LARGEST, Math.max(SMALLEST, Math.round(px)))));
  return chosen();
}

function apart(touches: TouchList): number {
  const [a, b] = [touches[0]!, touches[1]!];
  return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
}

/** Fingers on a terminal's box: two pinch its letters, one moves it sideways. Up and down are the emulator's, except where
    `upright`: then the box goes first, as far as the terminal is higher. */
export class Hand {
  private pinch: { apart: number; px: number } | null = null;
  private at: { x: number; y: number; left: number; top: number } | null = null;
  private unbind = new AbortController();

  constructor(private box: HTMLElement, private size: () => number, private resize: (px: number) => void, private upright = false) {
    const on = (kind: string, act: (event: TouchEvent) => void): void =>
      box.addEventListener(kind, (event) => act(event as TouchEvent), { capture: true, passive: false, signal: this.unbind.signal });
    on("touchstart", (event) => this.down(event));
    on("touchmove", (event) => this.move(event));
    on("touchend", () => (this.pinch = this.at = null));
    on("touchcancel", () => (this.pinch = this.at = null));
  }

  /** What is being written stays in sight where the terminal is higher than its box. */
  follow(term: Terminal, row: number): void {
    const over = this.box.scrollHeight - this.box.clientHeight;
    if (over <= 0) return;
    const bottom = (term.buffer.active.cursorY + 2) * row;
    this.box.scrollTop = Math.min(over, Math.max(0, bottom - this.box.clientHeight));
  }

  dispose(): void {
    this.unbind.abort();
  }

  private down(event: TouchEvent): void {
    const one = event.touches[0]!;
    this.pinch = event.touches.length === 2 ? { apart: apart(event.touches), px: this.size() } : null;
    this.at = event.touches.length === 1 ? { x: one.clientX, y: one.clientY, left: this.box.scrollLeft, top: this.box.scrollTop } : null;
  }

  private move(event: TouchEvent): void {
    if (this.pinch && event.touches.length === 2) {
      event.preventDefault(); // the page itself stays as it is
      event.stopPropagation();
      const px = Math.round(this.pinch.px * (apart(event.touches) / Math.max(1, this.pinch.apart)));
      if (px !== Math.round(this.size())) this.resize(px);
    } else if (this.at && event.touches.length === 1) {
      const one = event.touches[0]!;
      this.box.scrollLeft = this.at.left - (one.clientX - this.at.x);
      if (!this.upright) return;
      const top = this.box.scrollTop;
      this.box.scrollTop = this.at.top - (one.clientY - this.at.y);
      if (this.box.scrollTop !== top) event.stopPropagation();
    }
  }
}
