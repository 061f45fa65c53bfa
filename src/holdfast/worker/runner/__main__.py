"""`python -m holdfast.worker.runner OPTIONS`: what `hold work run` becomes. OPTIONS is JSON (cli/work/work_run.py)."""

from __future__ import annotations

import asyncio
import json
import logging
import sys

from ...model.errors import HoldfastError
from .runner import runner


def main() -> int:
    options = json.loads(sys.argv[1])
    # The store logs here when its server disconnects and reconnects.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="hold work: %(message)s")
    try:
        return asyncio.run(runner(options))
    except HoldfastError as e:
        if options.get("json"):
            sys.stdout.write(json.dumps({"error": e.as_dict()}) + "\n")
        else:
            sys.stderr.write(f"hold: {e.line()}\n")
        return e.exit_status
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
