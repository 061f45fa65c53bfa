// A WebSocket that is meant to stay: it notices silence, and comes back by itself.
//
// The network can be gone without a word (a stalled radio, a sleeping laptop), so silence counts as an end. Attempts to
// come back overlap: one that hangs must not keep the next from succeeding, and a slow host must not be given up on.

const SILENCE_MS = 8000; // the server says something every 5 s; one heartbeat may be late
const ANSWER_MS = 1500; // for a sign of life when the network is back: a new line then still fits into 3 s
const AGAIN_MS = 1500; // between attempts: two of them, and an answer, fit into the 3 s after a network's return
const ATTEMPT_MS = 15000; // an attempt that is still unanswered then will not be
const ATTEMPTS_MAX = 4; // at once
// How the server ends a line for good: it is done, what was said was no message, it is not for us, it is not there.
const FINAL = new Set([1000, 1008, 4403, 4404]);

export interface LineEvents {
  /** The address to call, asked anew for each attempt. */
  address(): string;
  message(data: string | ArrayBuffer): void;
  /** It is connected (the first message arrived), or it is not. */
  connected(yes: boolean): void;
  /** The server has ended it for good: there is no use in trying again. */
  over(code: number): void;
}

export class Line {
  private current: WebSocket | null = null;
  private attempts = new Set<WebSocket>();
  private heard = 0; // by the clock on the wall, which goes on while a laptop sleeps
  private tried = 0;
  private everything = new AbortController();
  private timer: ReturnType<typeof setInterval>;

  constructor(private events: LineEvents) {
    const { signal } = this.everything;
    const look = (): void => this.returned();
    window.addEventListener("online", look, { signal });
    window.addEventListener("pageshow", look, { signal });
    document.addEventListener("visibilitychange", look, { signal });
    this.timer = setInterval(() => this.check(), 500);
    this.attempt();
  }

  send(message: object): boolean {
    if (this.current?.readyState !== WebSocket.OPEN) return false;
    this.current.send(JSON.stringify(message));
    return true;
  }

  close(): void {
    clearInterval(this.timer);
    this.everything.abort();
    for (const socket of [...this.attempts, this.current]) if (socket) drop(socket);
    this.attempts.clear();
    this.current = null;
  }

  /** The line as it is may be stale in a way that only the server knows: begin anew. */
  again(): void {
    this.lose();
    this.attempt();
  }

  /** The network or the page came back: a line that does not answer now is not waited for any longer. */
  private returned(): void {
    if (document.visibilityState === "hidden") return;
    const { current, heard } = this;
    if (!current) {
      if (this.attempts.size < ATTEMPTS_MAX) this.attempt();
      return;
    }
    this.send({ kind: "ping" });
    setTimeout(() => {
      if (this.current === current && this.heard === heard) this.again();
    }, ANSWER_MS);
  }

  private check(): void {
    const now = Date.now();
    if (this.current) {
      if (now - this.heard > SILENCE_MS) this.again();
      return;
    }
    if (now - this.tried >= AGAIN_MS && this.attempts.size < ATTEMPTS_MAX) this.attempt();
  }

  private lose(): void {
    if (!this.current) return;
    drop(this.current);
    this.current = null;
    this.events.connected(false);
  }

  private attempt(): void {
    this.tried = Date.now();
    const url = this.events.address().replace(/^/, `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}`);
    let socket: WebSocket;
    try {
      socket = new WebSocket(url);
    } catch {
      return;
    }
    socket.binaryType = "arraybuffer";
    this.attempts.add(socket);
    const giveUp = setTimeout(() => this.forget(socket), ATTEMPT_MS);
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      clearTimeout(giveUp);
      if (!this.won(socket)) return;
      this.heard = Date.now();
      this.events.message(event.data);
    };
    socket.onclose = (event) => {
      clearTimeout(giveUp);
      this.ended(socket, event.code);
    };
  }

  /** The first attempt that is answered is the line; the others are let go. */
  private won(socket: WebSocket): boolean {
    if (socket === this.current) return true;
    if (this.current || !this.attempts.has(socket)) {
      this.forget(socket);
      return false;
    }
    this.attempts.delete(socket);
    for (const other of this.attempts) drop(other);
    this.attempts.clear();
    this.current = socket;
    this.events.connected(true);
    return true;
  }

  private forget(socket: WebSocket): void {
    this.attempts.delete(socket);
    drop(socket);
  }

  private ended(socket: WebSocket, code: number): void {
    this.attempts.delete(socket);
    const mine = socket === this.current;
    if (mine) {
      this.current = null;
      this.events.connected(false);
    }
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
