"""Operators and grants: who there is, who may do what, and the end of it."""

from __future__ import annotations

from .operation import Act, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Hex, Json, OperatorKind, Word


class Identify(Operation["Json"], op="identify", on="connection"):
    """Something to sign, good for this connection and one try."""

    operator: Word


class Prove(Operation["Json"], op="prove", on="connection"):
    """The signature, which makes the connection this operator's."""

    operator: Word
    signature: Hex


class Whoami(Operation["Json"], op="whoami", repeat="always", isolated=True):
    """The caller as the host sees it, and what it can give grants from."""


class OperatorLs(Operation["list[Json]"], op="operator_ls", repeat="always"):
    """All operators, for a caller that may see the whole host; else the caller alone."""

    all: bool = False


class OperatorFind(Operation["Json"], op="operator_find", repeat="always"):
    """Whom a name means."""

    operator: Word


class OperatorAdd(Act["Json"], op="operator_add", right="enrol", on="host", durable="ledger", changes=("list",)):
    """Enrol an operator by its public key, with a first grant or with none."""

    id: Word
    name: str
    kind: OperatorKind
    key: Hex
    grant: Json | None = None
    signature: Hex | None = None


class OperatorGrant(Act["Json"], op="operator_grant", durable="ledger", changes=("list",)):
    """Give an operator one more grant: signed by the giver, never wider than the giver's own."""

    grant: Json
    signature: Hex


class OperatorRevoke(Act["Json"], op="operator_revoke", durable="ledger", changes=("list",)):
    """End a grant, or all of an operator: its channels and its requests end with it."""

    target: Word
