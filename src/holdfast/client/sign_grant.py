"""Making a grant on the giver's side: choose what it is made from, fill it in, sign it with the giver's own key.

Nothing is judged here: what cannot be is refused by the host, which also writes down that it was tried.
"""

from __future__ import annotations

from ..model import ids
from ..model.operators import grants
from ..model.operators.grants import Grant
from ..system import signing_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Json = dict[str, Any]


def defaults(
    kind: str, verbs: Sequence[str] | None, sessions: Sequence[str] | None
) -> tuple[list[str], list[str]] | None:
    """Verbs and sessions where something is left out; None for no grant at all.

    An agent works in its own sessions unless told otherwise; whoever names verbs and no sessions means all of them.
    """
    if verbs is None and sessions is None and kind != "agent":
        return None
    if verbs is None:
        verbs = grants.AGENT_DEFAULT if kind == "agent" else []
        return list(verbs), list(sessions if sessions is not None else [grants.OWN])
    return list(verbs), list(sessions if sessions is not None else ["*"])


def make(
    me: Json,
    operator: str,
    verbs: Sequence[str],
    sessions: Sequence[str],
    ttl_s: float | None,
    depth: int | None,
    now: float,
) -> Grant:
    """The grant as it will be signed; `me` is the giver's own whoami."""
    chains = [tuple(grants.parse(link) for link in chain) for chain in me["held"]]
    until = None if ttl_s is None else now + ttl_s
    parent = grants.best_parent(chains, verbs, sessions, until, now) or (chains[0][0] if chains else None)
    if until is None and parent is not None:
        until = parent.until  # as long as the giver's own
    if depth is None:
        depth = min(1, parent.depth - 1) if parent is not None and "delegate" in verbs else 0
    return Grant(
        id=ids.new("grt_"),
        operator=operator,
        parent=parent.id if parent is not None else None,
        verbs=verbs,
        sessions=sessions,
        until=until,
        depth=depth,
        by=me["id"],
        at=now,
    )


def sign(folder: str, me: Json, grant: Grant) -> str:
    """Under the giver's key, which never leaves this machine."""
    return signing_keys.sign(signing_keys.load(folder, me["id"]), grant.signed_bytes(me["host"])).hex()
