"""Keys and journal, as the home itself shows them: who can read the keys, and is the last signed head in the ledger."""

from __future__ import annotations

import contextlib
import os
import pathlib
import stat

from ....model.doctor_findings import Finding, fail, ok, some, warn
from ....model.home import Home
from ....system.atomic_files import read_json
from .guarded import guarded


def findings(home: Home) -> list[Finding]:
    found = []
    if os.path.isdir(home.keys):
        found.append(guarded("keys", lambda: judge_keys(*modes(home.keys))))
    if os.path.exists(home.ledger):
        found.append(guarded("journal", lambda: judge_journal(*ends(home))))
    return found


def modes(folder: str) -> tuple[int, dict[str, int]]:
    """The folder's mode, and every key's."""
    inside = {n: stat.S_IMODE(os.lstat(os.path.join(folder, n)).st_mode) for n in sorted(os.listdir(folder))}
    return stat.S_IMODE(os.stat(folder).st_mode), inside


def judge_keys(folder: int, keys: dict[str, int]) -> Finding:
    loose = [f"{name} {mode:04o}" for name, mode in keys.items() if mode & 0o077]
    if folder & 0o077:
        loose.append(f"the folder {folder:04o}")
    if loose:
        return fail("keys", f"others may read or replace: {some(loose)}", "chmod 700 on the folder, 600 on the keys")
    return ok("keys", f"{len(keys)}, readable by you alone")


def ends(home: Home) -> tuple[dict[str, object] | None, int, bytes | None, list[str]]:
    """The head beside the ledger; the number of the last entry; the hash at the head; heads that did not match."""
    import sqlite3

    head = read_json(home.journal_head)
    name = os.path.basename(home.journal_head)
    kept = [n for n in os.listdir(home.path) if n.startswith(name + ".") and n.endswith(".kept")]
    with contextlib.closing(sqlite3.connect(f"{pathlib.Path(home.ledger).as_uri()}?mode=ro", uri=True)) as db:
        last = db.execute("SELECT max(n) FROM entries").fetchone()[0] or 0
        at = int(str((head or {}).get("n") or 0))
        found = db.execute("SELECT hash FROM entries WHERE n = ?", (at,)).fetchone()
    return head, int(last), bytes(found[0]) if found else None, kept


def judge_journal(head: dict[str, object] | None, last: int, there: bytes | None, kept: list[str]) -> Finding:
    if kept:
        return fail("journal", f"it did not hold what was signed before: {some(kept)}", "hold journal verify")
    if head is None:
        if last:
            return warn("journal", f"{last} entries, none signed yet", "nothing: it is signed within seconds")
        return ok("journal", "nothing is in it yet")
    if there is None or there.hex() != head.get("hash"):
        words = f"entry {head.get('n')} is not there as it was signed; {last} entries"
        return fail("journal", words, "hold journal verify names the first bad entry")
    return ok("journal", f"{last} entries, signed up to {head.get('n')}; hold journal verify proves all of it")
