"""Who is connected to this node: which line leads to a host, and since when a host is here or gone."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from ..model.errors import HoldfastError
from ..model.limits import RELAY_CONTESTED, RELAY_CONTESTED_S, RELAY_LINES_MAX, RELAY_SEEN_MAX

HOST, DEVICE = "host", "device"


@dataclass(frozen=True, slots=True)
class Party:
    """One end of a line, as its key has proven it. The tenant is part of the name: other tenants' parties are not
    found, which is the same answer as for one that does not exist."""

    tenant: str
    kind: str  # HOST or DEVICE
    id: str


@dataclass(frozen=True, slots=True)
class Joined:
    """`replaced` is the party's earlier line, which the node closes: a peer that dials again has lost it. `contested`:
    two machines seem to share one key, and replace each other."""

    replaced: int | None
    contested: bool


@dataclass(frozen=True, slots=True)
class Presence:
    """`since_s` is when the host came or went, None if this node has not seen it."""

    online: bool
    since_s: float | None


class Lines:
    def __init__(self) -> None:
        self._party_of: dict[int, Party] = {}
        self._line_of: dict[Party, int] = {}
        self._seen: dict[Party, float] = {}  # hosts, the least recent first
        self._replaced: dict[Party, deque[float]] = {}  # of parties that are here

    def join(self, line: int, party: Party, now: float) -> Joined:
        """Enter a line whose party has proven its key."""
        replaced = self._line_of.get(party)
        if replaced is None and len(self._party_of) >= RELAY_LINES_MAX:
            raise HoldfastError("quota", f"this relay node has {RELAY_LINES_MAX} lines", "try again later")
        contested = False
        if replaced is None:
            self._note(party, now)
        else:
            del self._party_of[replaced]
            times = self._replaced.setdefault(party, deque([-math.inf], maxlen=RELAY_CONTESTED))
            times.append(now)
            contested = len(times) == RELAY_CONTESTED and now - times[0] <= RELAY_CONTESTED_S
        self._party_of[line] = party
        self._line_of[party] = line
        return Joined(replaced, contested)

    def leave(self, line: int, now: float) -> Party | None:
        """The party that is gone now; None for a line that was replaced before, or never joined."""
        party = self._party_of.pop(line, None)
        if party is not None:
            del self._line_of[party]
            self._replaced.pop(party, None)
            self._note(party, now)
        return party

    def party(self, line: int) -> Party | None:
        return self._party_of.get(line)

    def host(self, tenant: str, host: str) -> int | None:
        """The line that leads to a host."""
        return self._line_of.get(Party(tenant, HOST, host))

    def presence(self, tenant: str, host: str) -> Presence:
        party = Party(tenant, HOST, host)
        return Presence(party in self._line_of, self._seen.get(party))

    def _note(self, party: Party, now: float) -> None:
        if party.kind != HOST:
            return
        self._seen.pop(party, None)
        self._seen[party] = now
        if len(self._seen) > RELAY_SEEN_MAX:
            gone = next(p for p in self._seen if p not in self._line_of)  # fewer lines than places: one is gone
            del self._seen[gone]
