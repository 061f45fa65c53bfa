// A recording on a time axis without its idle hours, and a terminal that shows any moment of it.
import { get, word } from "../lib/api";
import { cells, open, Scale, type View } from "../lib/term";
import { fromBase64 } from "../lib/text";
import type { Mark, Recording } from "../lib/types";
import { chosen, choose, Hand, onGlass, READABLE_PX } from "../session/letters";

const IDLE_S = 2; // a pause is never longer than this: long idle times are cut
const KEPT_BYTES = 32 * 1024 * 1024; // of a long session the latest so much: more would not fit into a phone
const USUAL_PX = 15; // of letters, where the whole terminal has room at that size
const PAUSE_BYTES = 512 * 1024; // written at once before the page may breathe

type Event = { at: number; time: number; after: number } & ({ data: Uint8Array } | { cols: number; rows: number } | { gap: number });

export interface Placed {
  mark: Mark;
  at: number;
}

export class Player {
  /** Seconds on the axis. */
  position = $state(0);
  length = $state(0);
  playing = $state(false);
  speed = $state(1);
  loading = $state(true);
  /** The recording begins later than the session did. */
  cut = $state(false);
  marks = $state.raw<Placed[]>([]);
  private events: Event[] = [];
  private shown = 0; // events that the terminal has
  private turn = 0; // of seeks; a later one ends an earlier one
  private frame = 0;
  private view: View;
  readonly touch = onGlass();
  private scale = this.scaled();
  private hand: Hand | null = null;
  private watch: ResizeObserver;

  constructor(private id: string, private box: HTMLElement) {
    this.view = open(box, { fontSize: 13, typing: false, ask: () => undefined });
    this.watch = new ResizeObserver(() => this.fit());
    this.watch.observe(box);
    if (this.touch) this.hand = new Hand(box, () => this.term.options.fontSize ?? USUAL_PX, (px) => this.setLetters(px), true);
  }

  get term(): View["term"] {
    return this.view.term;
  }

  async load(offset: number | null): Promise<void> {
    const [marks] = await Promise.all([get<Mark[]>(`/sessions/${word(this.id)}/marks`), this.fetch()]);
    this.marks = marks.map((mark) => ({ mark, at: this.axis(Date.parse(mark.at) / 1000) }));
    this.loading = false;
    const found = offset === null ? 0 : (this.events.find((e) => e.after >= offset)?.at ?? this.length);
    await this.seek(found);
  }

  /** The wall clock at the position, in milliseconds. */
  get clock(): number {
    return (this.events[Math.max(0, this.before(this.position) - 1)]?.time ?? 0) * 1000;
  }

  async seek(to: number): Promise<void> {
    this.position = Math.max(0, Math.min(this.length, to));
    const mine = ++this.turn;
    const wanted = this.before(this.position);
    if (wanted < this.shown) {
      this.shown = 0;
      this.term.write("\x1bc");
    }
    let written = 0;
    while (this.shown < wanted && mine === this.turn) {
      written += this.show(this.events[this.shown++]!);
      if (written < PAUSE_BYTES) continue;
      written = 0;
      await new Promise<void>((done) => this.term.write("", done));
    }
    if (mine === this.turn && this.hand) this.term.write("", () => this.hand?.follow(this.term, cells(this.term)?.height ?? 0));
  }

  toggle(): void {
    this.playing = !this.playing;
    cancelAnimationFrame(this.frame);
    if (!this.playing) return;
    if (this.position >= this.length) void this.seek(0);
    let last = performance.now();
    const step = (now: number): void => {
      const next = this.position + ((now - last) / 1000) * this.speed;
      last = now;
      void this.seek(next);
      if (this.position >= this.length) this.playing = false;
      if (this.playing) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  /** To the mark after or before the position. */
  jump(step: 1 | -1): void {
    const some = 0.05;
    const next = step > 0 ? this.marks.find((m) => m.at > this.position + some) : this.marks.findLast((m) => m.at < this.position - some);
    void this.seek(next?.at ?? (step > 0 ? this.length : 0));
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.turn += 1;
    this.watch.disconnect();
    this.hand?.dispose();
    this.view.dispose();
  }

  private async fetch(): Promise<void> {
    let from: number | null = null;
    let kept = 0;
    let last = 0;
    let at = 0;
    for (;;) {
      const page: Recording = await get<Recording>(`/sessions/${word(this.id)}/recording`, { from });
      if (from === null && page.end - page.start > KEPT_BYTES) {
        this.cut = true;
        from = page.end - KEPT_BYTES;
        continue;
      }
      for (const e of page.events) {
        // In whole microseconds: a slider knows 15 digits, and one that stops a hair before the end leaves out the last event.
        at = Math.round((at + (last ? Math.min(IDLE_S, Math.max(0, e.at - last)) : 0)) * 1e6) / 1e6;
        last = e.at;
        const place = { at, time: e.at, after: e.offset };
        if (e.kind === "output" && e.data) {
          const data = fromBase64(e.data);
          kept += data.length;
          this.events.push({ ...place, after: e.offset + data.length, data });
        } else if (e.kind === "size" && e.cols && e.rows) this.events.push({ ...place, cols: e.cols, rows: e.rows });
        else if (e.kind === "gap") this.events.push({ ...place, gap: (e.to ?? e.offset) - e.offset });
      }
      if (page.next === null || page.next === from || kept > KEPT_BYTES) break;
      from = page.next;
    }
    this.length = at;
  }

  /** How many events stand at or before a position. */
  private before(position: number): number {
    let low = 0;
    let high = this.events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.events[middle]!.at <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private axis(time: number): number {
    let low = 0;
    let high = this.events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.events[middle]!.time < time) low = middle + 1;
      else high = middle;
    }
    return this.events[low]?.at ?? this.length;
  }

  private show(event: Event): number {
    if ("data" in event) {
      this.term.write(event.data);
      return event.data.length;
    }
    if ("gap" in event) this.term.write(`\x1bc\x1b[2m[${event.gap} bytes are no longer kept]\x1b[0m\r\n`);
    else {
      this.term.write("", () => {
        this.term.resize(event.cols, event.rows);
        this.fit();
      });
    }
    return 0;
  }

  private setLetters(px: number): void {
    this.term.options.fontSize = choose(px) ?? USUAL_PX;
    this.scale = this.scaled();
    requestAnimationFrame(() => this.fit());
  }

  /** As in a live terminal: in the hand it is moved about sooner than made too small to read. */
  private scaled(): Scale {
    const px = this.touch ? chosen() : null;
    return new Scale(px ?? USUAL_PX, px ?? (this.touch ? READABLE_PX : undefined));
  }

  private fit(): void {
    this.scale.fit(this.term, this.box);
  }
}
