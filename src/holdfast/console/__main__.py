"""Entry of the web process: `python …/console/__main__.py HOME HOST PORT READY_FD [URL]`; the daemon starts it."""

import os
import sys

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    sys.path[:] = [root, *(p for p in sys.path if p not in ("", here))]

    from holdfast.console.server import main
    from holdfast.model.home import Home

    url = sys.argv[5] if len(sys.argv) > 5 else ""
    status = main(Home(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), url or None)
    sys.stderr.flush()
    os._exit(status)  # the daemon waits for this process, and nothing here needs an orderly teardown
