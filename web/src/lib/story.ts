// The journal's entries as sentences, for the page; the command line uses the same ones.
import { plain } from "./text";
import type { Entry } from "./types";

type Who = { name?: string; operator?: string } | string | null | undefined;

function name(who: unknown): string {
  const one = who as Who;
  return plain(typeof one === "string" ? one : (one?.name ?? one?.operator ?? "an operator"), 60);
}

const TARGETS: Record<string, string> = { tree: "everything", foreground: "the foreground job", main: "the main program" };

const WORDS: Record<string, (e: Entry) => string> = {
  start: () => "started it",
  restart: () => "started it again",
  input: (e) => (e.what === "exec" ? "ran a command" : "typed"),
  exec: () => "ran",
  send: (e) => (e.text ? "sent" : e.secret ? "sent a secret" : "sent input"),
  signal: (e) => `sent ${plain(String(e.signal), 20)} to ${TARGETS[String(e.target)] ?? "it"}`,
  take: (e) => `took the controls${e.from ? ` from ${name(e.from)}` : ""}`,
  hand: (e) => `handed the controls to ${name(e.to)}${e.note ? `: “${plain(String(e.note), 300)}”` : ""}`,
  preempt: (e) => `took the controls${e.from ? ` from ${name(e.from)}` : ""}${e.forced ? " by force" : ""}`,
  release: () => "released the controls",
  away: () => "is away and still holds the controls",
  expire: () => "lost the controls: their time expired",
  attach: (e) => `attached${e.via ? ` by ${plain(String(e.via), 20)}` : ""}`,
  detach: () => "went away",
  resize: (e) => `resized it to ${Array.isArray(e.size) ? e.size.join("×") : ""}`,
  answer: () => "answered a prompt",
  refuse: (e) => `was refused ${plain(String(e.op ?? ""), 40)}`,
  exit: (e) => ended(e.exit),
  ended: (e) => ended(e.exit),
};

function ended(exit: unknown): string {
  const end = exit as { code?: number | null; signal?: string | null; known?: boolean } | null;
  if (!end || end.known === false) return "ended, exit status unknown";
  return end.signal ? `ended by ${end.signal}` : `ended with exit ${end.code}`;
}

export function told(entry: Entry): string {
  return WORDS[entry.kind]?.(entry) ?? plain(entry.kind.replaceAll("_", " "), 60);
}
