// Text that programs and strangers wrote, made fit to be shown; and words for numbers and times.

// Controls, and the characters that turn the direction of text around: a name must not be able to look like another.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** One line of foreign text; what has no shape of its own is shown as such. */
export function plain(text: string | null | undefined, max = 4000): string {
  if (!text) return "";
  const short = text.length > max ? `${text.slice(0, max)}…` : text;
  return short.replace(UNSEEN, "\ufffd");
}

// What a terminal or a program obeys: sequences with their parameters and, where they end, their text. Every ESC goes: what
// is left around one that was taken out can begin no other.
const SEQUENCES = /(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]?|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[\x20-\x2f]*[\x30-\x7e]?/g;
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g; // all but tab and line ends

/** Text from the clipboard, to be typed: words and line ends, and nothing that leaves a bracketed paste or acts as a key. */
export function pasted(text: string): string {
  return text.replace(SEQUENCES, "").replace(CONTROLS, "");
}

export function command(words: string[] | string | null | undefined): string {
  if (!words) return "";
  return plain(typeof words === "string" ? words : words.map((w) => (/^[\w@%+=:,./-]+$/.test(w) ? w : quoted(w))).join(" "));
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

const STEPS: [number, string][] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]; // prettier-ignore

export function duration(seconds: number): string {
  for (const [size, unit] of STEPS) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  return "0 s";
}

export function ago(time: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  return seconds < 5 ? "now" : `${duration(seconds)} ago`;
}

export function clock(time: string | number, seconds = true): string {
  return new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined });
}

export function moment(time: string | number): string {
  const date = new Date(time);
  const today = new Date().toDateString() === date.toDateString();
  return today ? clock(time) : `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${clock(time, false)}`;
}

export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function many(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

/** Base64 of bytes, in pieces: spreading a large array onto the stack would overflow it. */
export function toBase64(data: Uint8Array): string {
  let text = "";
  for (let at = 0; at < data.length; at += 0x8000) text += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(text);
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}
