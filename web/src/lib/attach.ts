// One viewer's attachment to a session: output at its offset, whatever happens to the network, and input with a number.
import { Line } from "./line";
import { toBase64 } from "./text";
import type { AttachMessage } from "./types";

/** What shows the output. Everything is applied in the order in which it was called. */
export interface Sink {
  write(data: Uint8Array | string, shown: () => void): void;
  resize(cols: number, rows: number): void;
}

export interface AttachEvents {
  size(): { cols: number; rows: number } | null;
  connected(yes: boolean): void;
  message(message: AttachMessage): void;
  over(code: number): void;
}

const PIECE_BYTES = 16 * 1024; // the emulator takes a piece in one go, and the page waits: a few milliseconds at most
const INPUT_MAX = 64 * 1024; // bytes in one message; a long paste goes in several
const UNSURE_MAX = 256; // inputs that may be sent again after a drop

export class Attachment {
  /** The next byte that is wanted; unknown until the first restore. */
  offset: number | null = null;
  private restoring = false;
  private seq = 0;
  private unsure: { seq: number; data: string }[] = [];
  private readonly client = `web-${crypto.randomUUID()}`;
  private line: Line;

  constructor(id: string, private sink: Sink, private events: AttachEvents) {
    this.line = new Line({
      address: () => {
        const size = events.size();
        const query = new URLSearchParams({ client: this.client });
        if (this.offset !== null) query.set("from", String(this.offset));
        if (size) {
          query.set("cols", String(size.cols));
          query.set("rows", String(size.rows));
        }
        return `/api/sessions/${encodeURIComponent(id)}/attach?${query}`;
      },
      message: (data) => this.heard(data),
      connected: (yes) => {
        this.restoring = false;
        events.connected(yes);
        if (yes) for (const input of this.unsure) this.line.send({ kind: "input", ...input });
      },
      over: (code) => events.over(code),
    });
  }

  type(text: string): boolean {
    return this.typeBytes(new TextEncoder().encode(text));
  }

  /** Whether it is on its way. What was sent and not confirmed when the line broke is sent again, and applied once. */
  typeBytes(data: Uint8Array): boolean {
    for (let at = 0; at < data.length; at += INPUT_MAX) {
      const input = { seq: ++this.seq, data: toBase64(data.subarray(at, at + INPUT_MAX)) };
      if (!this.line.send({ kind: "input", ...input })) return false;
      this.unsure.push(input);
      if (this.unsure.length > UNSURE_MAX) this.unsure.shift();
    }
    return true;
  }

  resize(cols: number, rows: number): void {
    this.line.send({ kind: "resize", cols, rows });
  }

  take(force: boolean): boolean {
    return this.line.send({ kind: "take", force });
  }

  release(): boolean {
    return this.line.send({ kind: "release" });
  }

  close(): void {
    this.line.close();
  }

  private heard(data: string | ArrayBuffer): void {
    if (typeof data !== "string") this.output(data);
    else this.told(JSON.parse(data) as AttachMessage);
  }

  /** Eight bytes with the offset to go on from, then what is to be shown. */
  private output(frame: ArrayBuffer): void {
    const after = Number(new DataView(frame).getBigUint64(0));
    if (this.restoring) this.sink.write("\x1bc", () => undefined); // in its place in the queue, unlike reset()
    this.restoring = false;
    this.offset = after;
    const data = new Uint8Array(frame, 8);
    let at = 0;
    for (; at + PIECE_BYTES < data.length; at += PIECE_BYTES) this.sink.write(data.subarray(at, at + PIECE_BYTES), () => undefined);
    this.sink.write(data.subarray(at), () => this.line.send({ kind: "ack", offset: after }));
  }

  private told(message: AttachMessage): void {
    if (message.kind === "ping") this.line.send({ kind: "pong" });
    else if (message.kind === "restore") {
      this.restoring = true;
      this.sink.resize(message.cols, message.rows);
    } else if (message.kind === "size") this.sink.resize(message.cols, message.rows);
    else if (message.kind === "typed") this.unsure = this.unsure.filter((i) => i.seq > message.seq);
    else if (message.kind === "refused" && message.seq != null) this.unsure = this.unsure.filter((i) => i.seq !== message.seq);
    this.events.message(message);
    if (message.kind === "controls") this.line.send({ kind: "seen", epoch: message.epoch });
  }
}
