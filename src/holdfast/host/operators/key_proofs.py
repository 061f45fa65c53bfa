"""Proving a key: a connection becomes an operator's by signing what the host made up for it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ...api.operators import Identify, Prove
from ...model.errors import HoldfastError
from ...model.names import refused
from ...system import signing_keys
from ...wire import key_proof
from ..journal.refusals import Refusals
from ..server.connection import Peer
from .operators import Operators

Json = dict[str, Any]


class KeyProofs(NamedTuple):
    """Before a caller is known: `identify`, then `prove`."""

    operators: Operators
    refusals: Refusals

    def identify(self, request: Identify, peer: Peer) -> Json:
        """Something to sign, good for this connection and one try."""
        peer.nonce = os.urandom(key_proof.NONCE_BYTES)
        wanted = request.operator
        try:
            who = self.operators.find(wanted).id
        except HoldfastError:
            self._forged(peer, f"no operator {wanted[:60]!a} is enrolled here")
            raise refused(f"no operator {wanted[:60]!a} is enrolled here", "unset HOLDFAST_OPERATOR") from None
        return {"host": self.operators.host, "operator": who, "nonce": peer.nonce.hex()}

    def prove(self, request: Prove, peer: Peer) -> Json:
        nonce, peer.nonce = peer.nonce, None
        who = self.operators.by_id.get(request.operator)
        message = key_proof.message(self.operators.host, nonce or b"", who.id if who else "")
        if nonce is None or who is None or not signing_keys.signed(who.key, request.signature, message):
            self._forged(peer, "the proof of an operator's key did not hold")
            raise refused("that is not proof of the operator's key", "is it the key that was enrolled?")
        if who.revoked_at is not None:
            self._forged(peer, f"{who.name} was revoked")
            raise refused(f"{who.name} was revoked", "ask who enrolled it")
        peer.proven = who.id
        return who.actor

    def _forged(self, peer: Peer, reason: str) -> None:
        self.refusals.note("prove", reason, actor=None, session=None, pid=peer.pid, uid=peer.uid)
