"""The store and cache of a home: `[store] url` and `[cache] url` in its config.toml. Pure.

A password is never in config.toml: it is in a file next to it that only the owner can read.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..errors import HoldfastError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VARIABLES = {"store": "HOLDFAST_STORE", "cache": "HOLDFAST_CACHE"}
FORMS = "sqlite:////ABSOLUTE/FILE or postgresql://USER@HOST/DATABASE"
_SQLITE = "sqlite:///"


class Stores(NamedTuple):
    """The settings of config.toml; None is the default: the home's work.db, the memory of each process."""

    store: str | None = None
    cache: str | None = None


def parse(table: Mapping[str, Any]) -> Stores:
    """Parse the settings of a whole config.toml."""
    found = []
    for name in VARIABLES:
        of = table.get(name, {})
        if not isinstance(of, dict) or not set(of) <= {"url"} or not isinstance(of.get("url", ""), str):
            raise invalid(f"[{name}] has one setting, url", f'write [{name}] and url = "…"')
        found.append(of.get("url"))
    store, cache = found
    return Stores(None if store is None else checked(store), cache)


def checked(url: object) -> str:
    """Check a store's URL; a file needs an absolute path, because the host runs in another folder."""
    if isinstance(url, str) and url.startswith(_SQLITE) and len(url) > len(_SQLITE) and "\0" not in url:
        return _SQLITE + os.path.abspath(url[len(_SQLITE) :])
    if isinstance(url, str) and is_server(url) and len(url.partition("://")[2]) > 0:
        return url
    raise invalid(f"{without_password(str(url))[:80]!r} is not a valid store URL", f"use {FORMS}")


def file_of(url: str) -> str:
    """The file of a SQLite store."""
    return url[len(_SQLITE) :]


def of_file(path: str) -> str:
    return _SQLITE + path


def is_server(url: str) -> bool:
    """Whether the store is on a PostgreSQL server; a file has one writer, the host."""
    return url.partition("://")[0] in ("postgresql", "postgres")


def without_password(url: str) -> str:
    """The URL without its password, for display."""
    scheme, found, rest = url.partition("?")[0].partition("://")  # options may hold a password, too
    account, at, place = rest.rpartition("@")
    user, colon, _ = account.partition(":")
    shown = f"{scheme}://{user}{':***' if colon else ''}@{place}" if found and at else url.partition("?")[0]
    return shown[:200]


def split(url: str) -> tuple[str, str | None]:
    """(the URL without its password, the password)."""
    from urllib.parse import parse_qsl, unquote, urlencode  # here: most commands never need it

    if url.startswith(_SQLITE):
        return url, None
    base, mark, options = url.partition("?")
    pairs = parse_qsl(options, keep_blank_values=True)
    named = [value for key, value in pairs if key == "password"]
    scheme, found, rest = base.partition("://")
    account, at, place = rest.rpartition("@")
    user, colon, secret = account.partition(":")
    if found and at and colon:
        base = f"{scheme}://{user}@{place}" if user else f"{scheme}://{place}"
    if named:
        left = urlencode([pair for pair in pairs if pair[0] != "password"])
        return base + ("?" + left if left else ""), named[-1]
    return base + mark + options, unquote(secret) if found and at and colon else None


def joined(url: str, password: str | None) -> str:
    """The URL with its password; one that the URL already has takes precedence."""
    if password is None or url.startswith(_SQLITE) or split(url)[1] is not None:
        return url
    from urllib.parse import quote

    scheme, _, rest = url.partition("://")
    before, mark, options = rest.partition("?")
    account, at, place = before.rpartition("@")
    return f"{scheme}://{account}:{quote(password, safe='')}@{place if at else before}{mark}{options}"


def mismatch(name: str, asked: str, used: str | None) -> HoldfastError | None:
    """The error for a client whose variable names another store than the home's; None if it is the same."""
    wanted = checked(asked) if name == "store" else asked
    if used is not None and split(wanted)[0] == split(used)[0]:
        return None
    there = "none" if used is None else without_password(used)
    words = f"{VARIABLES[name]} is {without_password(wanted)}, this home's {name} is {there}"
    return HoldfastError("store_mismatch", words, f"unset {VARIABLES[name]}, or change the home: hold store use")


def written(text: str, name: str, url: str | None) -> str:
    """config.toml with the URL set or removed; everything else is unchanged."""
    import json
    import re
    import tomllib

    line = None if url is None else f"url = {json.dumps(url)}"
    lines, out, inside, done = text.splitlines(), list[str](), False, False
    for row in lines:
        header = re.match(r"\s*\[", row)
        if header:
            inside = bool(re.match(rf"\s*\[\s*{name}\s*\]\s*(#.*)?$", row))
        if inside and re.match(r"\s*url\s*=", row):
            continue
        out.append(row)
        if header and inside and line and not done:
            out.append(line)
            done = True
    if line and not done:
        out += ["", f"[{name}]", line] if out else [f"[{name}]", line]
    made = "\n".join(out) + "\n"
    try:
        if parse(tomllib.loads(made))._asdict()[name] == url:
            return made
    except (tomllib.TOMLDecodeError, HoldfastError):
        pass
    raise invalid(f"config.toml has [{name}] in a form that hold cannot edit", f"write it by hand: {line}")
