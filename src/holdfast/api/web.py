"""The HTTP port: where it is, the tokens of those who come through it, and the browsers let in."""

from __future__ import annotations

from .operation import Act, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Json, Seconds, Sha256, Word


class Web(Act["Json"], op="web", right="enrol", on="host", durable="journal"):
    """Serve HTTP at an address from now on, also after a restart; or no more."""

    listen: str | None = None
    url: str | None = None


class TokenAdd(Act["Json"], op="token_add", right="enrol", on="host", durable="ledger"):
    """A token for an agent: the client made it, and sends its hash."""

    operator: Word
    hash: Sha256
    ttl_s: Seconds | None = None


class TokenEnd(Act["Json"], op="token_end", right="enrol", on="host", durable="ledger", frees=True):
    """End all tokens of an agent."""

    operator: Word


class TokenCheck(Operation["Json"], op="token_check", right="enrol", on="host", repeat="always"):
    """Whom a token stands for; with `ended` answered when it no longer stands for an operator."""

    hash: Sha256
    ended: bool = False


class LoginAdd(Act["Json"], op="login_add", durable="ledger"):
    """A link that lets one browser in: the client made its secret, and sends the hash."""

    hash: Sha256
    operator: Word | None = None


class LoginUse(Act["Json"], op="login_use", right="enrol", on="host", durable="ledger"):
    """A browser came with a link; `login` is the hash of the secret that it gets for it."""

    hash: Sha256
    login: Sha256


class LoginCheck(Operation["Json"], op="login_check", right="enrol", on="host", repeat="always"):
    """Whose browser it is; with `ended` answered when it is let in no more."""

    hash: Sha256
    ended: bool = False


class LoginEnd(Act["Json"], op="login_end", right="enrol", on="host", durable="ledger", frees=True):
    """One browser is out, or, without a hash, all of them."""

    hash: Sha256 | None = None
