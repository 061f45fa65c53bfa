"""The host itself: its health, its end, the store it uses."""

from __future__ import annotations

from .operation import Act, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Json, Seconds


class Doctor(Operation["list[Json]"], op="doctor", right="view", on="host", repeat="always"):
    """What is wrong with this host and its home."""

    deep: bool = False


class Down(Act["Json"], op="down", right="stop", on="host", durable="journal", frees=True, changes=("list",)):
    """Stop the host; with `all` its sessions first. `stay`: it gives the leases of its workers back, and does not come
    up by itself."""

    all: bool = False
    stay: bool = False
    grace_s: Seconds | None = None


class Store(Operation["Json"], op="store", repeat="always"):
    """The store that this home uses, without passwords."""


class StoreUse(Act["Json"], op="store_use", right="enrol", on="host", durable="journal"):
    """Use another store, cache, or both; with neither, whether a change would be let through now."""

    store: str | None = None
    cache: str | None = None


class StoreMigrate(Operation["Json"], op="store_migrate", right="enrol", on="host"):
    """Copy the work from this home's file to an empty PostgreSQL database, and check it; the file stays as it was."""

    url: str


class RestoreConfirm(Act["Json"], op="restore_confirm", right="enrol", on="host", durable="journal"):
    """What a restored backup has the host run may run from now on."""
