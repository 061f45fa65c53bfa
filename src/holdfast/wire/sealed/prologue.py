"""What both ends must agree on before the first byte: a handshake whose prologues differ fails."""

from __future__ import annotations

from dataclasses import dataclass

from ...model.errors import invalid
from ...model.limits import SEALED_ID_BYTES_MAX

VERSION = 1
_LABEL = b"holdfast-sealed"


@dataclass(frozen=True, slots=True)
class Prologue:
    """Tenant, the node where the device's line ends, host and device. The relay announces them; the handshake proves
    that both ends were told the same."""

    tenant: str
    node: str
    host: str
    device: str

    def encode(self, version: int = VERSION) -> bytes:
        """Each part with its length before it, so that no two different prologues are the same bytes."""
        parts = [_LABEL, bytes((version,))]
        for name in ("tenant", "node", "host", "device"):
            value = getattr(self, name).encode()
            if not 0 < len(value) <= SEALED_ID_BYTES_MAX:
                raise invalid(f"a {name} id has 1 to {SEALED_ID_BYTES_MAX} bytes, this one has {len(value)}")
            parts.append(value)
        return b"".join(len(part).to_bytes(2, "big") + part for part in parts)
