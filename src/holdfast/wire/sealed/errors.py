"""Why a sealed channel ends: one exception, with a stable code for programs and a stable reason for the journal."""

from __future__ import annotations

from ...model.errors import HoldfastError

_TAMPERED = "connect again; if it happens again, the relay or the network changes what it forwards"
_OTHER_SIDE = "install the same version of Holdfast on both sides"

# reason -> (what happened, what to do)
REASONS = {
    "version": ("the other side speaks another version of the sealed channel", _OTHER_SIDE),
    "handshake": (
        "the handshake failed: another host key, other ids, or a message that was changed or sent again",
        "compare the host's key fingerprint with the one that was paired",
    ),
    "low_order": ("the other side sent a key that gives no secret", _TAMPERED),
    "truncated": ("a message is shorter than it can be", _TAMPERED),
    "too_long": ("a message is longer than allowed", _TAMPERED),
    "proof": ("the device's signature does not match this channel", "pair the device again"),
    "gap": ("records are missing", _TAMPERED),
    "replay": ("a record came again or out of order", _TAMPERED),
    "tag": ("a record was changed", _TAMPERED),
    "padding": ("a record is not padded as the protocol says", _OTHER_SIDE),
    "frame": ("a frame is malformed", _OTHER_SIDE),
    "stream": ("a frame names a stream that cannot have it", _OTHER_SIDE),
    "streams": ("the other side opened too many streams", _OTHER_SIDE),
    "credit": ("the other side sent or granted more than the window", _OTHER_SIDE),
    "exhausted": ("the channel has used all its numbers", "connect again"),
    "cut": ("the connection ended in the middle of the channel", "connect again"),
}


class SealedError(HoldfastError):
    """The channel is over. `code` is `version` or `sealed`; `reason` is a key of REASONS."""

    def __init__(self, reason: str, detail: str = "") -> None:
        what, hint = REASONS[reason]
        code = "version" if reason == "version" else "sealed"
        super().__init__(code, f"sealed channel ended: {what}{detail and f' ({detail})'} [{reason}]", hint)
        self.reason = reason
