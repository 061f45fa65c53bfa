"""Grants: what an operator may do, on which sessions, until when. Pure: effective rights are a function of `now`.

A grant is made from another one and is never wider: not in verbs, sessions, time or depth. That is checked when it is
made, and again in every decision, because a session must match every link of the chain up to the host's root grant.
What is not named is denied.
"""

from __future__ import annotations

import fnmatch

from .. import limits
from ..errors import HoldfastError
from ..journal_chain import canonical
from ..names import check_glob, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Json = dict[str, Any]
    Chain = tuple["Grant", ...]  # from the operator's own grant up to the root

VERBS = (
    "view",
    "start",
    "request_control",
    "type",
    "signal",
    "resize",
    "exec",
    "stop",
    "work",
    "approve",
    "delegate",
    "enrol",
)
HUMAN_ONLY = frozenset({"approve", "delegate", "enrol"})  # an agent or a service never has these, even if signed
KINDS = ("human", "agent", "service")
OWN = "@own"  # the sessions that the operator started, or that act as it
AGENT_DEFAULT = tuple(v for v in VERBS if v not in HUMAN_ONLY)  # on @own, for an agent added without --grant
_LABEL = b"holdfast-grant-v1\0"


class Scope:
    """The facts of a session that decide whether a grant covers it."""

    __slots__ = ("acts_as", "id", "name", "started_by")

    def __init__(self, id: str, name: str, started_by: str, acts_as: str) -> None:
        self.id, self.name, self.started_by, self.acts_as = id, name, started_by, acts_as


class Grant:
    """One grant, exactly as it was signed."""

    __slots__ = ("at", "by", "depth", "id", "operator", "parent", "sessions", "until", "verbs")

    def __init__(
        self,
        *,
        id: str,
        operator: str,
        parent: str | None,
        verbs: Iterable[str],
        sessions: Iterable[str],
        until: float | None,
        depth: int,
        by: str,
        at: float,
    ) -> None:
        self.id, self.operator, self.parent, self.by = id, operator, parent, by
        self.verbs, self.sessions = tuple(sorted(set(verbs))), tuple(sorted(set(sessions)))
        self.until, self.depth, self.at = until, depth, at

    def as_dict(self) -> Json:
        return {k: list(v) if isinstance(v := getattr(self, k), tuple) else v for k in self.__slots__}

    def signed_bytes(self, host: str) -> bytes:
        """The bytes that the granting operator signs; they include the host, so a grant is valid on one host only."""
        return _LABEL + canonical({"host": host, **self.as_dict()})


def parse(value: Mapping[str, object]) -> Grant:
    """Parse a grant from untrusted JSON; unknown, empty or out-of-range values are refused."""
    if set(value) != set(Grant.__slots__):
        raise refused("not a grant", "upgrade the client: it speaks another version")
    verbs, sessions, until, depth, at = (value[k] for k in ("verbs", "sessions", "until", "depth", "at"))
    ids = [value[k] for k in ("id", "operator", "by")] + ([value["parent"]] if value["parent"] is not None else [])
    if not all(isinstance(i, str) and 4 < len(i) <= limits.NAME_MAX and i.isascii() for i in ids):
        raise refused("a grant must name its operators and its parent by id", "list them: hold operator ls")
    if not isinstance(verbs, list) or not verbs or not isinstance(sessions, list) or not sessions:
        raise refused("a grant needs verbs and sessions", "--grant view,type --session 'web-*'")
    check_verbs(verbs)
    if len(sessions) > limits.GRANT_GLOBS_MAX:
        raise refused(f"a grant has at most {limits.GRANT_GLOBS_MAX} session patterns", "use wildcards, or two grants")
    for glob in sessions:
        check_glob(str(glob))
    if not isinstance(depth, int) or isinstance(depth, bool) or not 0 <= depth <= limits.GRANT_DEPTH_MAX:
        raise refused(f"a grant's depth is 0 to {limits.GRANT_DEPTH_MAX}", "0: it cannot be passed on")
    if not isinstance(at, (int, float)) or not (until is None or isinstance(until, (int, float))):
        raise refused("a grant's times must be seconds since 1970", "--ttl 2h")
    return Grant(
        id=str(value["id"]),
        operator=str(value["operator"]),
        by=str(value["by"]),
        verbs=map(str, verbs),
        parent=None if value["parent"] is None else str(value["parent"]),
        sessions=map(str, sessions),
        until=None if until is None else float(until),
        depth=depth,
        at=float(at),
    )


def check_verbs(verbs: Iterable[object]) -> None:
    for verb in verbs:
        if verb not in VERBS:
            raise refused(f"no such verb: {str(verb)[:40]!a}", ", ".join(VERBS))


def check_kind(verbs: Iterable[str], kind: str) -> None:
    barred = sorted(HUMAN_ONLY.intersection(verbs))
    if kind != "human" and barred:
        raise refused(
            f"an {kind} never has {' or '.join(barred)}".replace("an service", "a service"),
            "only a human decides who may do what",
        )


def check_child(child: Grant, parent: Grant, now: float) -> None:
    """Raise unless `child` is made by the parent's holder, may be made, and is not wider in any way."""
    if child.by != parent.operator or child.parent != parent.id:
        raise refused("a grant must be derived from one of its giver", "see yours: hold operator whoami")
    if "delegate" not in parent.verbs or parent.depth < 1:
        raise refused("that grant cannot be passed on", "it has no `delegate`, or no depth left")
    if child.depth >= parent.depth:
        raise refused(f"a grant from one of depth {parent.depth} has at most depth {parent.depth - 1}", "--depth")
    wider = [v for v in child.verbs if v not in parent.verbs]
    if wider:
        raise refused(f"the grant is wider than its parent: {', '.join(wider)}", "grant only what you have")
    for glob in child.sessions:
        if not any(covers(p, glob) for p in parent.sessions):
            raise refused(
                f"the grant is wider than its parent: {glob} is not within {', '.join(parent.sessions)}",
                "grant only what you have",
            )
    if parent.until is not None and (child.until is None or child.until > parent.until):
        raise refused("the grant is wider than its parent: it would last longer", "--ttl")
    if child.until is not None and child.until <= now:
        raise refused("the grant has already expired", "--ttl 2h")


def covers(parent: str, child: str) -> bool:
    """Whether `parent` matches every session that `child` can match; False if that is not certain."""
    if parent in ("*", child):
        return True
    if OWN in (child, parent):
        return False
    if not any(c in child for c in "*?["):
        return fnmatch.fnmatchcase(child, parent)
    stem = parent[:-1]  # of a pattern `stem*`; the child must begin with the same plain letters
    return parent.endswith("*") and not any(c in stem for c in "*?[") and child.startswith(stem)


def matches(grant: Grant, scope: Scope | None) -> bool:
    """Whether a session is in the grant; no session means the host itself, which only `*` covers."""
    if "*" in grant.sessions:
        return True
    if scope is None:
        return False
    for glob in grant.sessions:
        if glob == OWN:
            if grant.operator in (scope.started_by, scope.acts_as):
                return True
        elif fnmatch.fnmatchcase(scope.name, glob) or fnmatch.fnmatchcase(scope.id, glob):
            return True
    return False


def chain_of(grant: Grant, known: Mapping[str, Grant], dead: Callable[[Grant], bool], host: str) -> Chain | None:
    """The links from a grant up to the host's root, or None if one is missing, revoked or wider than the next."""
    links = [grant]
    while True:
        link = links[-1]
        if dead(link) or len(links) > limits.GRANT_DEPTH_MAX + 1:
            return None
        if link.parent is None:
            return tuple(links) if link.by == host else None
        parent = known.get(link.parent)
        if parent is None:
            return None
        try:
            check_child(link, parent, link.at)
        except HoldfastError:
            return None
        links.append(parent)


def allows(chains: Iterable[Chain], kind: str, verb: str, scope: Scope | None, now: float) -> bool:
    """Whether some chain has the verb, covers the session and is not expired, in every link."""
    if verb not in VERBS or (kind != "human" and verb in HUMAN_ONLY):
        return False
    for chain in chains:  # plain loops: this is asked for every request
        for link in chain:
            if verb not in link.verbs or not _holds(link, scope, now):
                break
        else:
            return True
    return False


def rights(
    chains: Iterable[Chain], kind: str, scope: Scope | None, now: float
) -> tuple[set[str], list[str], float | None]:
    """For a channel: the verbs in force, the operator's grants they come from, and when the first of those ends."""
    verbs: set[str] = set()
    used: list[str] = []
    ends: list[float] = []
    for chain in chains:
        if not _in_force(chain, scope, now):
            continue
        verbs.update(v for v in VERBS if all(v in link.verbs for link in chain))
        used.append(chain[0].id)
        ends += [link.until for link in chain if link.until is not None]
    if kind != "human":
        verbs -= HUMAN_ONLY
    return verbs, sorted(set(used)), min(ends, default=None)


def _in_force(chain: Chain, scope: Scope | None, now: float) -> bool:
    return all(_holds(link, scope, now) for link in chain)


def _holds(link: Grant, scope: Scope | None, now: float) -> bool:
    return (link.until is None or now < link.until) and matches(link, scope)


def best_parent(
    chains: Iterable[Chain], verbs: Iterable[str], sessions: Iterable[str], until: float | None, now: float
) -> Grant | None:
    """The first of an operator's grants from which such a grant can be made; else the first that can be passed on."""
    wanted, globs = set(verbs), list(sessions)
    able = [c[0] for c in chains if c[0].depth > 0 and "delegate" in c[0].verbs and timely(c, now)]
    for grant in able:
        if (
            wanted <= set(grant.verbs)
            and all(any(covers(p, g) for p in grant.sessions) for g in globs)
            and (grant.until is None or (until is not None and until <= grant.until))
        ):
            return grant
    return able[0] if able else None


def timely(chain: Chain, now: float) -> bool:
    """Whether no link has expired."""
    return all(link.until is None or now < link.until for link in chain)
