// A persistent WebSocket: it detects silence, and reconnects on its own.
//
// The network can be gone without a word (a stalled radio, a sleeping laptop), so silence counts as an end. There is one
// attempt at a time, because browsers make them one after the other: one that hangs is let go when the host answers
// otherwise, each time after twice as long, so that a slow host is not given up on.
import { abandon } from "./api";
import { forget, knock } from "./knock";

const LOOK_MS = 500; // between two looks at the line
const SLEPT_MS = 2500; // looks further apart than this: the page was frozen, or the machine asleep
const SILENCE_MS = 8000; // the server says something every 5 s; one heartbeat may be late
const ANSWER_MS = 1500; // for a sign of life when the network is back: a new line then still fits into 3 s
const AGAIN_MS = 1000; // between two attempts that fail at once
const PATIENCE_MS = [1500, 20000] as const; // for an attempt while the host answers otherwise: at first, and at most
// How the server ends a line for good: it is done, what was said was no message, it is not for us, it is not there.
const FINAL = new Set([1000, 1008, 4403, 4404]);

export interface LineEvents {
  /** The address to call, asked anew for each attempt. */
  address(): string;
  message(data: string | ArrayBuffer): void;
  /** It is connected (the first message arrived), or it is not. */
  connected(yes: boolean): void;
  /** The server has closed it for good: do not retry. */
  over(code: number): void;
}

export class Line {
  private current: WebSocket | null = null;
  private trying: WebSocket | null = null;
  private heard = 0; // by the clock on the wall, which goes on while a laptop sleeps
  private tried = 0;
  private looked = Date.now();
  private patience: number = PATIENCE_MS[0];
  private everything = new AbortController();
  private timer: ReturnType<typeof setInterval>;
  private readonly there = (): void => this.answered();

  constructor(private events: LineEvents) {
    const { signal } = this.everything;
    const look = (): void => this.returned();
    window.addEventListener("online", look, { signal });
    window.addEventListener("pageshow", look, { signal });
    document.addEventListener("visibilitychange", look, { signal });
    document.addEventListener("resume", look, { signal });
    this.timer = setInterval(() => this.check(), LOOK_MS);
    this.attempt();
  }

  send(message: object): boolean {
    if (this.current?.readyState !== WebSocket.OPEN) return false;
    this.current.send(JSON.stringify(message));
    return true;
  }

  close(): void {
    clearInterval(this.timer);
    forget(this.there);
    this.everything.abort();
    for (const socket of [this.trying, this.current]) if (socket) drop(socket);
    this.trying = this.current = null;
  }

  /** The network or the page came back: a line that does not answer now is not waited for any longer. */
  private returned(): void {
    if (document.visibilityState === "hidden") return;
    this.patience = PATIENCE_MS[0];
    const { current, heard } = this;
    if (!current) {
      knock(this.there);
      return;
    }
    this.send({ kind: "ping" });
    setTimeout(() => {
      if (this.current === current && this.heard === heard) this.silent();
    }, ANSWER_MS);
  }

  private check(): void {
    const now = Date.now();
    const slept = now - this.looked > SLEPT_MS;
    this.looked = now;
    if (!this.current) knock(this.there);
    else if (slept) this.returned();
    else if (now - this.heard > SILENCE_MS) this.silent();
  }

  /** What was asked along the same way is as lost as the line: it must not stand in the way of what is asked now. */
  private silent(): void {
    abandon();
    if (this.current) drop(this.current);
    this.current = null;
    this.events.connected(false);
    this.attempt();
  }

  /** The host is there: call it, unless a call is under way that may still be answered. */
  private answered(): void {
    const age = Date.now() - this.tried;
    if (this.current || age < (this.trying ? this.patience : AGAIN_MS)) return;
    if (this.trying) this.patience = Math.min(2 * this.patience, PATIENCE_MS[1]);
    this.attempt();
  }

  private attempt(): void {
    this.tried = Date.now();
    if (this.trying) drop(this.trying);
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}${this.events.address()}`);
    this.trying = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      this.heard = Date.now();
      if (socket === this.trying) this.answers(socket);
      this.events.message(event.data);
    };
    socket.onclose = (event) => this.ended(socket, event.code);
  }

  private answers(socket: WebSocket): void {
    this.trying = null;
    this.current = socket;
    this.patience = PATIENCE_MS[0];
    forget(this.there);
    this.events.connected(true);
  }

  private ended(socket: WebSocket, code: number): void {
    const mine = socket === this.current;
    if (mine) this.current = null;
    else this.trying = null;
    if (mine) this.events.connected(false);
    if (FINAL.has(code)) {
      this.close();
      this.events.over(code);
    } else if (mine) this.attempt();
  }
}

function drop(socket: WebSocket): void {
  socket.onmessage = socket.onclose = null;
  socket.close();
}
