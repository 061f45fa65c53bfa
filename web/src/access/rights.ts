// The verbs of a grant in words for people, and what is offered first.

export type Kind = "human" | "agent" | "service";

export const MEANINGS: Record<string, string> = {
  view: "see it", start: "new sessions", request_control: "ask for the controls", type: "type into it", signal: "send signals", resize: "size it",
  exec: "run commands", stop: "end it", work: "tasks and runs", approve: "answer for people", delegate: "pass on", enrol: "let others in",
}; // prettier-ignore
export const verbs = Object.keys(MEANINGS);
export const PEOPLE_ONLY = ["approve", "delegate", "enrol"];

/** The default choice: an agent works, a person views and types, a service views. */
export function usual(kind: Kind): string[] {
  if (kind === "agent") return verbs.filter((v) => !PEOPLE_ONLY.includes(v));
  return kind === "human" ? ["view", "request_control", "type"] : ["view"];
}

/** Session patterns as a person writes them. */
export const words = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

export function where(patterns: string[]): string {
  const named = patterns.map((p) => (p === "*" ? "all sessions" : p === "@own" ? "its own sessions" : p));
  return named.join(", ");
}
