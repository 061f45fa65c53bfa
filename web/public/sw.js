// Keeps the shell of the console, so that it opens at once and says so when the host is away. Never anything of /api.
const SHELL = "shell-1";

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(SHELL).then((cache) => cache.add("/")).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(self.clients.claim());
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== self.location.origin) return;
  if (event.request.mode === "navigate" && !belongsToServer(url.pathname)) event.respondWith(page(event.request));
  else if (url.pathname.startsWith("/assets/")) event.respondWith(asset(event.request));
});

function belongsToServer(path) {
  return path.startsWith("/api/") || path.startsWith("/mcp") || path === "/healthz";
}

/** The page as it is now; the one that was kept when the host does not answer. */
async function page(request) {
  const cache = await caches.open(SHELL);
  try {
    const fresh = await fetch(request);
    if (fresh.ok) {
      await cache.put("/", fresh.clone());
      await drop(cache, await fresh.clone().text());
    }
    return fresh;
  } catch (error) {
    const kept = await cache.match("/");
    if (kept) return kept;
    throw error;
  }
}

/** Files named by their content never change: the first answer is the answer. */
async function asset(request) {
  const cache = await caches.open(SHELL);
  const kept = await cache.match(request);
  if (kept) return kept;
  const fresh = await fetch(request);
  if (fresh.ok) await cache.put(request, fresh.clone());
  return fresh;
}

/** A new page names new entry files: what belonged to the page before is forgotten whole, and fetched again as needed. */
async function drop(cache, html) {
  const entry = /\/assets\/index-[\w-]+\.js/.exec(html)?.[0];
  const keys = await cache.keys();
  const kept = keys.map((key) => new URL(key.url).pathname);
  if (!entry || kept.includes(entry)) return;
  if (!kept.some((path) => /\/assets\/index-[\w-]+\.js/.test(path))) return;
  await Promise.all(keys.filter((_, i) => kept[i].startsWith("/assets/")).map((key) => cache.delete(key)));
}
