// What every screen shares: who is logged in, the sessions and the inbox as the host tells them, and the connection.
import { SvelteMap } from "svelte/reactivity";
import { ApiError, get, line, post, whenLoggedOut } from "./api";
import { Line } from "./line";
import type { Ask, LiveMessage, Me, Session } from "./types";

class Live {
  me = $state.raw<Me | null>(null);
  login = $state<"unknown" | "out" | "in">("unknown");
  connected = $state(false);
  /** Not connected for long enough to show it; short interruptions are not shown. */
  away = $state(false);
  problem = $state("");
  now = $state(Date.now());
  sessions = new SvelteMap<string, Session>();
  inbox = new SvelteMap<string, Ask>();
  loaded = $state(false);
  private gone = new Set<string>(); // told of since the lists were asked for last
  private channel: Line | null = null;
  private told: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    whenLoggedOut(() => this.loggedOut());
    setInterval(() => (this.now = Date.now()), 1000);
  }

  get open(): Ask[] {
    return [...this.inbox.values()].filter((a) => a.state === "open").sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
  }

  /** The one-time token of a login link is in the fragment, which no server sees; it leaves the address at once. */
  async enter(): Promise<void> {
    const token = new URLSearchParams(location.hash.slice(1)).get("login");
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
    try {
      if (token) await post("/login", { token });
    } catch (error) {
      this.problem = line(error);
    }
    await this.start();
  }

  async start(): Promise<void> {
    try {
      this.me = await get<Me>("/me");
      this.login = "in";
      this.problem = "";
      this.channel ??= new Line({
        address: () => "/api/live?all=1",
        message: (data) => this.heard(data),
        connected: (yes) => this.linked(yes),
        over: () => this.again(),
      });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
      this.problem = line(error);
      setTimeout(() => void this.start(), 2000); // the host is away; it is asked again until it is back
    }
  }

  async logout(): Promise<void> {
    await post("/logout");
    this.loggedOut();
  }

  /** The lists as they are now; pushes only tell what changes afterwards, and what they told meanwhile is newer. */
  async refresh(): Promise<void> {
    const before = [...this.sessions.keys()];
    const gone = this.gone = new Set<string>();
    try {
      const [sessions, inbox] = await Promise.all([get<Session[]>("/sessions", { all: true }), get<Ask[]>("/inbox", { all: true })]);
      const there = new Set(sessions.map((s) => s.id));
      for (const id of before) if (!there.has(id)) this.sessions.delete(id);
      for (const session of sessions) if (!gone.has(session.id) && (this.sessions.get(session.id)?.observed_at ?? "") <= session.observed_at) this.sessions.set(session.id, session);
      for (const item of inbox) if ((this.inbox.get(item.id)?.changed ?? 0) <= item.changed) this.inbox.set(item.id, item);
      this.loaded = true;
    } catch (error) {
      if (!(error instanceof ApiError && (error.status === 401 || error.status === 0))) this.problem = line(error);
    }
  }

  private linked(yes: boolean): void {
    this.connected = yes;
    clearTimeout(this.told);
    if (yes) {
      this.away = false;
      void this.refresh();
    } else this.told = setTimeout(() => this.missed(), 1500);
  }

  private missed(): void {
    this.away = true;
    get("/me").catch(() => undefined); // a login that has ended is told by this, and by no socket
  }

  private again(): void {
    this.channel = null;
    setTimeout(() => void this.start(), 1000);
  }

  private heard(data: string | ArrayBuffer): void {
    if (typeof data !== "string") return;
    const message = JSON.parse(data) as LiveMessage;
    if (message.kind === "sessions") for (const s of message.sessions) this.sessions.set(s.id, { ...this.sessions.get(s.id), ...s });
    else if (message.kind === "gone") {
      this.gone.add(message.id);
      this.sessions.delete(message.id);
    }
    else if (message.kind === "inbox") for (const item of message.items) this.inbox.set(item.id, item);
  }

  private loggedOut(): void {
    this.login = "out";
    this.me = null;
    this.channel?.close();
    this.channel = null;
    this.connected = this.away = false;
    this.sessions.clear();
    this.inbox.clear();
  }
}

export const live = new Live();
