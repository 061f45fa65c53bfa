"""Serves the built page and its files, with their security headers."""

from __future__ import annotations

import asyncio
import mimetypes
import os

from starlette.requests import Request
from starlette.responses import Response

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")
_FOR_EVER = "public, max-age=31536000, immutable"  # file names in this folder contain a content hash
_HASHED = "assets/"
_TYPES = {".js": "text/javascript", ".webmanifest": "application/manifest+json", ".woff2": "font/woff2"}
_MISSING = b"The console's page was not built into this installation. The API works: see docs/api.md.\n"

ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def policy(authority: str) -> str:
    """The content security policy: own files, and WebSockets to the own origin (which older browsers need by name).

    Inline scripts and styles are forbidden. The page turns the style elements of the terminal (xterm.js) into style
    sheets (web/src/lib/styles.ts).
    """
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        f"connect-src 'self' ws://{authority}; manifest-src 'self'; worker-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


def find(folder: str, path: str) -> str | None:
    """The file at a path, if it is inside the folder."""
    words = path.strip("/").split("/")
    if not all(words) or any(word.startswith(".") or "\\" in word or "\0" in word for word in words):
        return None
    found = os.path.realpath(os.path.join(folder, *words))
    inside = os.path.realpath(folder) + os.sep
    return found if found.startswith(inside) and os.path.isfile(found) else None


async def page(request: Request) -> Response:
    """Serve a file by name; for every other path the page itself, which routes on the client."""
    path = request.url.path
    found = find(_FOLDER, path) if path != "/" else None
    headers = {**ALWAYS, "content-security-policy": policy(request.headers["host"])}
    if found is None and path.lstrip("/").startswith(_HASHED):
        return Response(b"no such file\n", 404, headers, "text/plain")
    named = found is not None and path.lstrip("/").startswith(_HASHED)
    file = found or os.path.join(_FOLDER, "index.html")
    try:
        body = await asyncio.to_thread(_read, file)
    except OSError:
        return Response(_MISSING, 404, headers, "text/plain")
    headers["cache-control"] = _FOR_EVER if named else "no-cache"
    return Response(body, 200, headers, media_type(file))


def media_type(path: str) -> str:
    kind = _TYPES.get(os.path.splitext(path)[1]) or mimetypes.guess_type(path)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
