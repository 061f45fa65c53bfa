// Where the page stands: the address bar, as a path's words and a query. Links are plain links.

export class Route {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));

  /** The path's words, decoded. */
  get words(): string[] {
    return this.path.split("/").filter(Boolean).map(decode);
  }

  read(): void {
    this.path = location.pathname;
    this.query = new URLSearchParams(location.search);
  }
}

function decode(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

export const route = new Route();

export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  route.read();
  if (replace) return;
  window.scrollTo(0, 0);
  // What was pressed is gone with its page: keyboard users continue at the new one.
  document.getElementById("main")?.focus({ preventScroll: true });
}

/** Follow links to pages of our own without loading the page again. */
export function followLinks(): () => void {
  const click = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname.startsWith("/api/")) return;
    event.preventDefault();
    go(link.pathname + link.search);
  };
  const pop = (): void => route.read();
  document.addEventListener("click", click);
  window.addEventListener("popstate", pop);
  return () => {
    document.removeEventListener("click", click);
    window.removeEventListener("popstate", pop);
  };
}
