"""The entry of a zygote whose keepers ask nobody who types: for `stamps`, which says what asking costs. No session of a
host's is ever kept by one."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path[:] = [sys.argv.pop(2), *(p for p in sys.path if p not in ("", os.path.dirname(os.path.abspath(__file__))))]

    from holdfast.keeper.channels import frames_in
    from holdfast.keeper.channels.channel import Channel
    from holdfast.keeper.keeper import Keeper
    from holdfast.keeper.start import zygote

    def unasked(keeper: Keeper, channel: Channel, payload: bytes) -> None:
        """What is left of typing without operators: into the terminal, and that something was typed."""
        keeper.input.add(payload[16:], "")
        keeper.typed += 1
        keeper.flush_input()

    frames_in._input_frame = unasked
    zygote.main()
