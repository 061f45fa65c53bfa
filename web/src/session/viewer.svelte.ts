// One terminal on the page: the emulator, its attachment, its size, and what is known of the controls.
import type { Terminal } from "@xterm/xterm";
import { Attachment } from "../lib/attach";
import { cells, open, Scale, type View } from "../lib/term";
import { pasted, plain } from "../lib/text";
import { chosen, choose, Hand, onGlass, READABLE_PX } from "./letters";
import type { AttachMessage, Controls, Session } from "../lib/types";

// Reports of the mouse and of focus come from moving about, not from typing: they must not take free controls.
const REPORT = /^(\x1b\[[IO]|\x1b\[<[\d;]+[mM]|\x1b\[M[\s\S]{3})+$/;

export class Viewer {
  connected = $state(false);
  /** It was connected once: from then on a missing connection is worth a word. */
  begun = $state(false);
  controls = $state.raw<Controls | null>(null);
  exit = $state.raw<Session["exit"] | undefined>(undefined);
  /** What happened to the controls or the output, for people. */
  notice = $state("");
  /** A person holds the controls and was asked for them: refused, or no answer in time. */
  refused = $state(false);
  link = $state.raw<URL | null>(null);
  over = $state(0);
  /** Output is put into the page for screen readers. A choice, because it hinders input methods. */
  aloud = $state(localStorage.getItem("aloud") === "yes");
  readonly touch = onGlass();
  readonly usual = this.touch ? 12 : 13;
  term: Terminal;
  private attachment: Attachment;
  private view: View;
  private acted = false;
  private scale: Scale;
  private base: number;
  private hand: Hand | null = null;
  /** The chosen font size in pixels, if any. */
  letters = $state(chosen());
  private watch: ResizeObserver;
  private unbind = new AbortController();

  constructor(id: string, private box: HTMLElement, leave: () => void, search: () => void) {
    this.base = this.letters ?? this.usual;
    this.scale = this.scaled();
    this.view = open(box, { fontSize: this.base, typing: !this.touch, ask: (url) => (this.link = url) });
    this.term = this.view.term;
    this.term.options.screenReaderMode = this.aloud;
    this.keys(leave, search);
    box.addEventListener("paste", (event) => this.paste(event), { capture: true, signal: this.unbind.signal });
    this.attachment = new Attachment(id, {
      write: (data, shown) => this.term.write(data, shown),
      resize: (cols, rows) => this.term.write("", () => this.sized(cols, rows)), // after what was written before it
    }, {
      size: () => this.wanted(),
      connected: (yes) => {
        this.connected = yes;
        this.begun ||= yes;
      },
      message: (message) => this.heard(message),
      over: (code) => (this.over = code),
    }); // prettier-ignore
    this.watch = new ResizeObserver(() => this.fit());
    this.watch.observe(box);
    if (this.touch) this.hand = new Hand(box, () => this.letters ?? this.base, (px) => this.setLetters(px));
  }

  get mine(): boolean {
    return this.controls?.mine ?? false;
  }

  /** Another operator has the controls: typing would be refused, so it is not sent. */
  get watching(): boolean {
    return Boolean(this.controls?.holder) && !this.mine;
  }

  type(text: string): boolean {
    if (!this.may()) return false;
    this.acted = true;
    return this.attachment.type(text) || this.unsent();
  }

  /** Controls that a person holds are asked for first; `force` takes them unasked, which is recorded. */
  take(force = false): void {
    this.acted = true;
    this.refused = false;
    if (!this.attachment.take(force)) this.unsent();
    else if (this.watching && this.controls?.holder_kind === "human" && !force) this.notice = `Asking ${plain(this.controls.name ?? "the holder", 80)} for the controls…`;
  }

  release(): void {
    if (!this.attachment.release()) this.unsent();
  }

  setAloud(yes: boolean): void {
    this.aloud = yes;
    this.term.options.screenReaderMode = yes;
    localStorage.setItem("aloud", yes ? "yes" : "no");
  }

  setLetters(px: number | null): void {
    this.letters = choose(px);
    this.base = this.letters ?? this.usual;
    this.scale = this.scaled();
    this.term.options.fontSize = this.base;
    requestAnimationFrame(() => this.fit());
  }

  dispose(): void {
    this.watch.disconnect();
    this.unbind.abort();
    this.hand?.dispose();
    this.attachment.close();
    this.view.dispose();
  }

  /** The whole screen, or what is selected. */
  text(): string {
    if (this.term.hasSelection()) return this.term.getSelection();
    const buffer = this.term.buffer.active;
    const lines: string[] = [];
    for (let y = 0; y < this.term.rows; y += 1) lines.push(buffer.getLine(buffer.baseY + y)?.translateToString(true) ?? "");
    return lines.join("\n").trimEnd();
  }

  /** In the hand a terminal is moved about sooner than made too small to read; a size that was chosen is kept. */
  private scaled(): Scale {
    return new Scale(this.base, this.letters ?? (this.touch ? READABLE_PX : undefined));
  }

  private may(): boolean {
    if (this.exit !== undefined || this.over) return false;
    if (!this.watching) return true;
    this.notice = `${plain(this.controls?.name ?? "Another operator", 80)} holds the controls. Take over to type.`;
    return false;
  }

  private unsent(): false {
    this.notice = "Not connected: that was not sent.";
    return false;
  }

  private keys(leave: () => void, search: () => void): void {
    this.term.attachCustomKeyEventHandler((event) => {
      if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return true;
      const act = { KeyL: leave, KeyF: search, KeyC: () => void navigator.clipboard?.writeText(this.text()) }[event.code];
      if (!act) return true;
      event.preventDefault();
      if (event.type === "keydown") act();
      return false;
    });
    this.term.onData((data) => {
      if (REPORT.test(data) && !this.mine) return;
      this.type(data);
    });
    this.term.onBinary((data) => {
      if (this.mine) this.attachment.typeBytes(Uint8Array.from(data, (c) => c.charCodeAt(0)));
    });
  }

  /** Instead of the emulator, which brackets a paste where the program wants that, and leaves in it what ends the bracket. */
  private paste(event: ClipboardEvent): void {
    event.preventDefault();
    event.stopPropagation();
    const text = pasted(event.clipboardData?.getData("text/plain") ?? "");
    if (text && !this.term.options.disableStdin) this.term.paste(text);
  }

  private heard(message: AttachMessage): void {
    if (message.kind === "controls") {
      this.controls = message;
      if (!message.mine) this.acted = false;
      if (message.mine || !message.holder) this.notice = "";
      if (message.mine || message.holder_kind !== "human") this.refused = false;
      this.fit();
    } else if (message.kind === "taken") this.notice = `${plain(message.by.name, 80)} took the controls.${noted(message.note)}`;
    else if (message.kind === "handed") this.notice = `${plain(message.by.name, 80)} handed you the controls.${noted(message.note)}`;
    else if (message.kind === "gap") this.notice = `Output from byte ${message.from} to ${message.to} is no longer stored.`;
    else if (message.kind === "refused") {
      this.notice = [message.error.message, message.error.hint].filter(Boolean).join(": ");
      this.refused = message.seq == null && this.watching && this.controls?.holder_kind === "human";
    }
    else if (message.kind === "exit") this.exit = message.exit;
  }

  private sized(cols: number, rows: number): void {
    if (cols > 0 && rows > 0) this.term.resize(cols, rows);
    this.fit();
  }

  /** What would fill the box at the usual size of letters. */
  private wanted(): { cols: number; rows: number } | null {
    const cell = cells(this.term);
    const { clientWidth: width, clientHeight: height } = this.box;
    if (!cell || !width || !height) return null;
    const scale = this.base / (this.term.options.fontSize ?? this.base);
    return { cols: Math.max(20, Math.floor(width / (cell.width * scale))), rows: Math.max(5, Math.floor(height / (cell.height * scale))) };
  }

  /** The holder's window sizes the terminal; all viewers see the whole terminal, with a smaller font if necessary. */
  private fit(): void {
    const size = this.wanted();
    const cell = cells(this.term);
    if (!size || !cell) return;
    if (this.acted && this.mine && (size.cols !== this.term.cols || size.rows !== this.term.rows)) this.attachment.resize(size.cols, size.rows);
    this.scale.fit(this.term, this.box);
    this.hand?.follow(this.term, cell.height);
  }
}

function noted(note: string | null): string {
  return note ? ` “${plain(note, 500)}”` : "";
}
