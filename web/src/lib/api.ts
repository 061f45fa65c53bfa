// Requests to the host's API: JSON in both directions, and errors.

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }

  /** One line for people: what happened, and what to do. */
  get line(): string {
    return this.hint ? `${this.message} (${this.hint})` : this.message;
  }
}

/** Called when a request is refused because the login has ended. */
let onLoggedOut: () => void = () => undefined;
export function whenLoggedOut(tell: () => void): void {
  onLoggedOut = tell;
}

export function line(error: unknown): string {
  if (error instanceof ApiError) return error.line;
  return error instanceof Error ? error.message : String(error);
}

const ANSWER_MS = 20000; // to look at something; a page that waits for longer has asked into the void

let looking = new AbortController();
/** Nothing will come of what is being looked at: the way to the host is lost. What changes something is left alone. */
export function abandon(): void {
  looking.abort();
  looking = new AbortController();
}

type Query = Record<string, string | number | boolean | null | undefined>;

function address(path: string, query?: Query): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== false) words.set(name, String(value));
  }
  const text = words.toString();
  return `/api${path}${text ? `?${text}` : ""}`;
}

async function request<T>(method: string, url: string, body?: unknown, patience = ANSWER_MS): Promise<T> {
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(url, {
      method,
      signal: method === "GET" ? AbortSignal.any([looking.signal, AbortSignal.timeout(patience)]) : null,
      credentials: "same-origin",
      cache: "no-store",
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    text = await answer.text();
  } catch {
    throw new ApiError(0, "host_gone", "the host does not answer", "is it running? hold up --web");
  }
  if (answer.ok) return (text ? JSON.parse(text) : undefined) as T;
  let error: Partial<{ code: string; message: string; hint: string }> = {};
  try {
    error = (JSON.parse(text) as { error?: typeof error }).error ?? {};
  } catch {
    // not JSON: the status is all there is
  }
  const failed = new ApiError(answer.status, error.code ?? "failed", error.message ?? answer.statusText, error.hint ?? "");
  if (answer.status === 401 && !url.startsWith("/api/login")) onLoggedOut();
  throw failed;
}

export const get = <T>(path: string, query?: Query, patience?: number): Promise<T> => request<T>("GET", address(path, query), undefined, patience);
export const post = <T = unknown>(path: string, body: unknown = {}): Promise<T> => request<T>("POST", address(path), body);
export const remove = <T = unknown>(path: string): Promise<T> => request<T>("DELETE", address(path));
export const word = encodeURIComponent;
