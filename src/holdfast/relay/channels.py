"""Which end of a channel belongs to which: a device's number on its line, joined with a host's number on its own.

An end is named by its line, so a party can name its own channels only, whatever number it sends.
"""

from __future__ import annotations

from typing import NamedTuple

from ..model.errors import HoldfastError, invalid
from ..model.limits import RELAY_DEVICE_CHANNELS_MAX, RELAY_HOST_CHANNELS_MAX

_NUMBERS = 1 << 32


class End(NamedTuple):
    line: int
    number: int


class Channels:
    def __init__(self) -> None:
        self._other: dict[End, End] = {}
        self._of_line: dict[int, dict[int, None]] = {}  # numbers in use; a line without channels has no entry
        self._next: dict[int, int] = {}  # of host lines: numbers rise, so that a late message meets no new channel

    def open(self, device: End, host_line: int) -> End:
        """Join a device's new channel with a host's line; the host's end, whose number the node chooses."""
        if not 0 < device.number < _NUMBERS or device in self._other:
            raise invalid(f"channel {device.number} cannot be opened", "use a new number")
        if len(self._of_line.get(device.line, ())) >= RELAY_DEVICE_CHANNELS_MAX:
            raise HoldfastError("quota", f"this device has {RELAY_DEVICE_CHANNELS_MAX} channels", "close one first")
        if len(self._of_line.get(host_line, ())) >= RELAY_HOST_CHANNELS_MAX:
            raise HoldfastError("quota", f"the host has {RELAY_HOST_CHANNELS_MAX} channels", "try again later")
        number = self._next.get(host_line, 1)
        if number >= _NUMBERS:
            raise HoldfastError("quota", "the host's line has used all its numbers", "the host has to connect again")
        self._next[host_line] = number + 1
        host = End(host_line, number)
        for end, other in ((device, host), (host, device)):
            self._other[end] = other
            self._of_line.setdefault(end.line, {})[end.number] = None
        return host

    def other(self, end: End) -> End | None:
        """Where a message for this channel goes; None if it is closed or was never opened."""
        return self._other.get(end)

    def close(self, end: End) -> End | None:
        """Forget a channel; its other end, which is to be told."""
        other = self._other.pop(end, None)
        if other is not None:
            del self._other[other]
            for one in (end, other):
                numbers = self._of_line[one.line]
                del numbers[one.number]
                if not numbers:
                    del self._of_line[one.line]
        return other

    def drop(self, line: int) -> list[End]:
        """A line is gone: the other ends of its channels, which are to be told."""
        numbers = list(self._of_line.get(line, ()))
        self._next.pop(line, None)
        return [other for number in numbers if (other := self.close(End(line, number)))]
