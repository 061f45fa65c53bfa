// Asks whether the host is there, for lines that lost it, and tells them when it answers.
//
// A plain request is asked before a socket is opened: browsers hold back sockets, for seconds, after many that failed.

const EVERY_MS = 450; // between two questions; with a socket behind the answer, a return is noticed within a second
const PATIENCE_MS = 15000; // a question that is unanswered then will not be
const AT_ONCE = 2; // of the six requests that a browser sends to one place

const waiting = new Set<() => void>();
let asked: AbortController[] = [];
let last = 0;

/** Have `answered` called once the host answers. To be asked again and again: each question may be lost on its way. */
export function knock(answered: () => void): void {
  waiting.add(answered);
  const now = Date.now();
  if (now - last < EVERY_MS && now >= last) return;
  last = now;
  // The oldest is left to wait for a slow host; the newer one makes way for one that meets a network that is back.
  while (asked.length >= AT_ONCE) asked.pop()!.abort();
  void ask();
}

export function forget(answered: () => void): void {
  waiting.delete(answered);
}

async function ask(): Promise<void> {
  const question = new AbortController();
  asked.push(question);
  const late = setTimeout(() => question.abort(), PATIENCE_MS);
  try {
    const answer = await fetch("/healthz", { cache: "no-store", credentials: "omit", signal: question.signal });
    if (answer.ok) there();
  } catch {
    // not yet
  } finally {
    clearTimeout(late);
    asked = asked.filter((other) => other !== question);
  }
}

function there(): void {
  for (const question of asked) question.abort();
  const told = [...waiting];
  waiting.clear();
  for (const answered of told) answered();
}
