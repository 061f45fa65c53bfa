"""Reads secrets without echo or from stdin, and keeps them out of core files."""

from __future__ import annotations

import sys

from ...model.errors import HoldfastError
from ..ui import printing

SECRET_BYTES_MAX = 64 << 10  # a key file, not a disk


def guard() -> None:
    """Disable core dumps of this process, to a file (limit) and to a collector (not dumpable)."""
    import resource

    from ...client.process import set_undumpable

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    set_undumpable()


def ask(whose: str) -> bytes:
    """Read a secret from this terminal without echo."""
    import getpass
    import warnings

    guard()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)  # no terminal: it would echo
            return getpass.getpass(f"secret for {printing.safe(whose)}: ").encode("utf-8", "surrogateescape")
    except (getpass.GetPassWarning, EOFError, OSError):
        raise HoldfastError("usage", "no terminal to ask at", "pass the secret with --stdin") from None


def from_stdin() -> bytes:
    guard()
    secret = sys.stdin.buffer.read(SECRET_BYTES_MAX + 1)
    if len(secret) > SECRET_BYTES_MAX:
        raise HoldfastError(
            "invalid", f"the secret is longer than {SECRET_BYTES_MAX} bytes", "pass a key or a password, not a file"
        )
    return secret
