"""The operators enrolled here and their grants: loaded once, kept in memory, changed only through the ledger."""

from __future__ import annotations

import functools
import math
import os
import pwd
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ...model import ids, limits
from ...model.errors import HoldfastError, not_found
from ...model.journal_chain import canonical
from ...model.names import check_operator_name, refused, skeleton
from ...model.operators import grants
from ...model.operators.grants import Grant, Scope
from ...model.times import rfc3339
from ...system import signing_keys
from ..journal.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.operators.grants import Chain

Json = dict[str, Any]
# How a change is written: with its journal entry, in one transaction.
Commit = Callable[[Callable[[sqlite3.Connection], object]], Awaitable[None]]


class Operator:
    """One who acts: what it is called, what it is, and the key that proves it."""

    __slots__ = ("at", "by", "id", "key", "kind", "name", "revoked_at")

    def __init__(self, id: str, name: str, kind: str, key: str, by: str, at: float, revoked_at: float | None) -> None:
        self.id, self.name, self.kind, self.key = id, name, kind, key
        self.by, self.at, self.revoked_at = by, at, revoked_at

    @property
    def actor(self) -> Json:
        return {"operator": self.id, "kind": self.kind, "name": self.name}


class Operators:
    """Who is enrolled and what each may do now. A grant that does not verify is as if it were not there."""

    def __init__(self, ledger: Ledger, host: str, keys_folder: str) -> None:
        self._ledger, self.host, self._keys = ledger, host, keys_folder
        self.by_id: dict[str, Operator] = {}
        self.grants: dict[str, Grant] = {}
        self.revoked: dict[str, float] = {}
        self._signatures: dict[str, str] = {}
        # Found out once and kept until something changes: with the change after which it was looked up, because threads
        # look as well, and one that was slow must not put back what is no longer so.
        self._changes = 0
        self._chains: dict[str, tuple[int, list[Chain]]] = {}
        self._workers: dict[str, tuple[int, str, float]] = {}
        self.first = ""
        self._unread: list[str] = []  # grants in the ledger that are none
        self._checked: dict[str, bool] = {}  # by id: whether the signature is the maker's; asked when first needed
        self._seed: bytes | None = None

    # -- loading

    async def open(self, first: Json) -> None:
        """Enrol the OS user as the first human, once; then know everybody."""
        self.first = str(first["operator"])
        await self._ledger.write(lambda db: self._load(db, first))

    def sign(self, message: bytes) -> bytes:
        """Under the host's key; on the ledger's thread, where the wait for the disk disturbs nobody."""
        return signing_keys.sign(self._secret(), message)

    def _secret(self) -> bytes:
        if self._seed is None:
            if not signing_keys.kept(self._keys, self.host):
                signing_keys.make(self._keys, self.host)
            self._seed = signing_keys.load(self._keys, self.host)
        return self._seed

    @functools.cached_property
    def host_key(self) -> str:
        """The public half."""
        return signing_keys.public_of(self._secret())

    def signed(self, signature: str, message: bytes) -> bool:
        """Whether the host signed this."""
        return signing_keys.signed(self.host_key, signature, message)

    def _load(self, db: sqlite3.Connection, first: Json) -> None:
        if db.execute("SELECT 1 FROM operators WHERE id = ?", (self.first,)).fetchone() is None:
            self._enrol_first(db, first)
        for row in db.execute("SELECT id, name, kind, key, by, at, revoked_at FROM operators"):
            self.by_id[row[0]] = Operator(*row)
        for id, body, signature, revoked_at in db.execute("SELECT id, body, signature, revoked_at FROM grants"):
            self._adopt(str(id), bytes(body), str(signature), revoked_at)

    def _enrol_first(self, db: sqlite3.Connection, first: Json) -> None:
        now = time.time()
        public = self._first_key()
        db.execute(
            "INSERT INTO operators VALUES (?, ?, 'human', ?, ?, ?, NULL)",
            (self.first, str(first["name"]), public, self.host, now),
        )
        root = Grant(
            id=ids.new("grt_"),
            operator=self.first,
            parent=None,
            verbs=grants.VERBS,
            sessions=["*"],
            until=None,
            depth=limits.GRANT_DEPTH_MAX,
            by=self.host,
            at=now,
        )
        _insert(db, root, self.sign(root.signed_bytes(self.host)).hex())

    def _first_key(self) -> str:
        if signing_keys.kept(self._keys, self.first):
            return signing_keys.public_of(signing_keys.load(self._keys, self.first))
        return signing_keys.make(self._keys, self.first)

    def _adopt(self, id: str, body: bytes, signature: str, revoked_at: float | None) -> None:
        import json

        try:
            grant = grants.parse(json.loads(body))
        except (ValueError, HoldfastError):
            self._unread.append(id)
            return
        if grant.id != id:
            self._unread.append(id)
            return
        self.grants[id], self._signatures[id] = grant, signature
        if revoked_at is not None:
            self.revoked[id] = float(revoked_at)

    # -- soundness

    def _sound(self, grant: Grant) -> bool:
        """Whether its maker signed it. That the home's owner holds the root grant is said by the home itself."""
        if grant.parent is None:
            return grant.by == self.host and grant.operator == self.first
        known = self._checked.get(grant.id)
        if known is None:
            known = self._checked[grant.id] = self._is_signed(grant)
        return known

    def _is_signed(self, grant: Grant) -> bool:
        maker = self.by_id.get(grant.by)
        key = self.host_key if grant.by == self.host else maker.key if maker else ""
        return signing_keys.signed(key, self._signatures[grant.id], grant.signed_bytes(self.host))

    def unsound(self) -> list[str]:
        """Grants in the ledger that are none, or not as their maker signed them."""
        return self._unread + [g.id for g in self.grants.values() if not self._is_signed(g)]

    # -- asking

    def find(self, wanted: str) -> Operator:
        """By name or id; one that was revoked is still found, and has no rights."""
        found = self.by_id.get(wanted) or next((o for o in self.by_id.values() if o.name == wanted), None)
        if found is None:
            raise not_found(f"no operator {wanted[:60]!a} is enrolled here", "hold operator ls")
        return found

    def chains(self, operator: str) -> list[Chain]:
        """The operator's grants with all they rest on; kept until something changes."""
        changes, known = self._changes, self._chains.get(operator)
        if known is None or known[0] != changes:
            mine = (g for g in self.grants.values() if g.operator == operator)
            found = (grants.chain_of(g, self.grants, self._dead, self.host) for g in mine)
            known = self._chains[operator] = changes, [c for c in found if c is not None]
        return known[1]

    def worker(self, operator: str, now: float) -> str | None:
        """Its name, where it may do durable work of its own. Asked for every step, from any thread."""
        changes, known = self._changes, self._workers.get(operator)
        if known is None or known[0] != changes or known[2] <= now:
            verbs, _, until = self.rights(operator, Scope("", "", operator, operator), now)
            if "work" not in verbs:
                return None
            name = self.by_id[operator].name
            known = self._workers[operator] = changes, name, math.inf if until is None else until
        return known[1]

    def _dead(self, grant: Grant) -> bool:
        holder = self.by_id.get(grant.operator)
        return grant.id in self.revoked or holder is None or holder.revoked_at is not None or not self._sound(grant)

    def allows(self, operator: str, verb: str, scope: Scope | None, now: float) -> bool:
        who = self.by_id.get(operator)
        return who is not None and grants.allows(self.chains(operator), who.kind, verb, scope, now)

    def rights(self, operator: str, scope: Scope, now: float) -> tuple[set[str], list[str], float | None]:
        who = self.by_id.get(operator)
        return grants.rights(self.chains(operator), who.kind, scope, now) if who else (set(), [], None)

    def resting_on(self, grant: Grant | None, operator: str) -> list[str]:
        """The grants that end with this one, or with all of this operator's."""
        chains = (c for who in self.by_id for c in self.chains(who))
        return [c[0].id for c in chains if any(g is grant or (not grant and g.operator == operator) for g in c)]

    # -- changing

    def check_new(self, name: str, kind: str, key: str) -> None:
        """Raise unless such an operator can be enrolled."""
        check_operator_name(name)
        if kind not in grants.KINDS:
            raise refused(f"there is no kind of operator {kind[:40]!a}", "human, agent or service")
        if len(self.by_id) >= limits.OPERATORS_MAX:
            raise HoldfastError("conflict", f"this host has {limits.OPERATORS_MAX} operators", "that is its limit")
        for other in self.by_id.values():
            if other.name == name:
                raise HoldfastError("conflict", f"an operator named {name} is enrolled already", "choose another name")
            if skeleton(other.name) == skeleton(name):
                raise refused(f"{name} could be taken for {other.name}", "choose a name that differs more")
            if other.key == key:
                raise refused("that key is another operator's", "each operator has its own")
        if len(key) != 64 or not all(c in "0123456789abcdef" for c in key):
            raise refused("that is not an Ed25519 public key", "64 hexadecimal digits")

    async def enrol(self, id: str, name: str, kind: str, key: str, by: str, commit: Commit) -> Operator:
        made = Operator(id, name, kind, key, by, time.time(), None)
        values = (made.id, made.name, made.kind, made.key, made.by, made.at)
        self.by_id[id] = made  # at once: nobody else gets the name meanwhile, and it may do nothing yet
        try:
            await commit(lambda db: db.execute("INSERT INTO operators VALUES (?, ?, ?, ?, ?, ?, NULL)", values))
        except BaseException:
            del self.by_id[id]
            raise
        return made

    def check_grant(self, grant: Grant, signature: str, maker: str, kind: str, now: float) -> None:
        """Raise unless `maker` may give this: made from a grant in force of its own, signed, and nowhere wider."""
        if grant.by != maker:
            raise refused("a grant is signed by the one who gives it", "sign it with your own key")
        parent = self.grants.get(grant.parent or "")
        if parent is None or not any(c[0] is parent for c in self.chains(maker)):
            raise refused("a grant is made from one that its maker holds", "hold operator whoami shows yours")
        chain = next(c for c in self.chains(maker) if c[0] is parent)
        if any(link.until is not None and link.until <= now for link in chain):
            raise refused("the grant that it is made from has expired", "hold operator whoami")
        grants.check_child(grant, parent, now)
        grants.check_kind(grant.verbs, kind)
        if abs(grant.at - now) > _CLOCK_S:
            raise refused("the grant was not made just now", "sign it again")
        if grant.id in self.grants or not grant.id.startswith("grt_"):
            raise refused("the grant's id was used before", "sign a new one")
        if sum(grants.timely(c, now) for c in self.chains(grant.operator)) >= limits.GRANTS_HELD_MAX:
            raise HoldfastError("conflict", f"it holds {limits.GRANTS_HELD_MAX} grants already", "revoke some first")
        if len(self.grants) >= limits.GRANTS_MAX:
            raise HoldfastError("conflict", f"this host keeps {limits.GRANTS_MAX} grants", "that is its limit")
        if not signing_keys.signed(self.by_id[maker].key, signature, grant.signed_bytes(self.host)):
            raise refused("the grant's signature is not its maker's", "sign it with your own key")

    async def give(self, grant: Grant, signature: str, commit: Commit) -> None:
        try:
            await commit(lambda db: _insert(db, grant, signature))
        except sqlite3.IntegrityError:
            raise refused("the grant's id was used before", "sign a new one") from None
        self._signatures[grant.id], self.grants[grant.id] = signature, grant  # for whoever looks in between
        self._changes += 1

    async def revoke_grant(self, grant: Grant, by: str, commit: Commit) -> None:
        now = time.time()
        self.revoked[grant.id] = now
        self._changes += 1
        change = "UPDATE grants SET revoked_at = ?, revoked_by = ? WHERE id = ?"
        await commit(lambda db: db.execute(change, (now, by, grant.id)))

    async def revoke_operator(self, who: Operator, commit: Commit) -> None:
        now = who.revoked_at = time.time()
        self._changes += 1
        change = "UPDATE operators SET revoked_at = ? WHERE id = ?"
        await commit(lambda db: db.execute(change, (now, who.id)))

    # -- telling

    def view(self, who: Operator, now: float) -> Json:
        return {
            "id": who.id,
            "name": who.name,
            "kind": who.kind,
            "key": who.key,
            "enrolled_by": who.by,
            "enrolled_at": rfc3339(who.at),
            "revoked_at": rfc3339(who.revoked_at),
            "grants": [self.grant_view(g, now) for g in self.grants.values() if g.operator == who.id],
        }

    def grant_view(self, grant: Grant, now: float) -> Json:
        chain = next((c for c in self.chains(grant.operator) if c[0] is grant), None)
        ended = chain is not None and any(link.until is not None and link.until <= now for link in chain)
        state = "revoked" if chain is None else "expired" if ended else "in force"
        return {
            **grant.as_dict(),
            "at": rfc3339(grant.at),
            "until": rfc3339(grant.until),
            "state": state,
            "revoked_at": rfc3339(self.revoked.get(grant.id)),
        }


_CLOCK_S = 300.0  # maker and host are one machine, or two with clocks that roughly agree


def _insert(db: sqlite3.Connection, grant: Grant, signature: str) -> None:
    values = (grant.id, grant.operator, canonical(grant.as_dict()), signature)
    db.execute("INSERT INTO grants VALUES (?, ?, ?, ?, NULL, NULL)", values)


def os_user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
