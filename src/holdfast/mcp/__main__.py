"""`python -m holdfast.mcp OPTIONS`: what `hold mcp` becomes."""

from __future__ import annotations

import gc
import json
import os
import sys

from ..model.errors import HoldfastError


def run(options: dict[str, str | None]) -> int:
    # The library keeps what it creates: collecting garbage during the import takes a tenth of its time.
    gc.disable()
    try:
        from .stdio import main
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise HoldfastError("failed", "the MCP library is not installed", "pip install 'holdfast[mcp]'") from None
    gc.freeze()
    gc.enable()
    main(options.get("name"), options.get("wait_max"))
    return 0


if __name__ == "__main__":
    try:
        status = run(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
        sys.stderr.flush()
        os._exit(status)  # the client waits for this process, and nothing here needs an orderly teardown
    except HoldfastError as e:
        print(f"hold: {e.line()}", file=sys.stderr)  # noqa: T201 - the only word there is before the protocol begins
        sys.exit(e.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)
