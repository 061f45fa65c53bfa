"""`python -m holdfast.worker OPTIONS`: what `hold worker` becomes. OPTIONS is a JSON object; see cli/work/worker.py."""

from __future__ import annotations

import json
import logging
import sys

from ..model.errors import HoldfastError
from .event_lines import Events
from .jobs.load import load
from .jobs.worker import Worker


def main() -> int:
    options = json.loads(sys.argv[1])
    as_json = bool(options.get("json"))
    # The store logs here when its server disconnects and reconnects.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="hold worker: %(message)s")
    try:
        jobs = load(options["jobs"])
        worker = Worker(
            jobs,
            Events(as_json),
            standby=options["standby"],
            lease=options["lease"],
            name=options["name"],
            once=options["once"],
        )
        return worker.run()
    except HoldfastError as e:
        if as_json:
            sys.stdout.write(json.dumps({"error": e.as_dict()}) + "\n")
        else:
            sys.stderr.write(f"hold: {e.code}: {e.line()}\n" if e.code == "fenced" else f"hold: {e.line()}\n")
        return e.exit_status
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
