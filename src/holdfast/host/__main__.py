"""Entry of the daemon: `python …/host/__main__.py HOME [READY_FD]`; started by the first client that needs it.

With READY_FD it leaves its starter (fork) and writes there once it serves; without, it stays in the foreground for
a service manager.
"""

import os
import sys

if __name__ == "__main__":
    ready = int(sys.argv[2]) if len(sys.argv) > 2 else -1
    if ready >= 0 and os.fork():
        os._exit(0)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path[:] = [root, *(p for p in sys.path if p not in ("", os.path.dirname(os.path.abspath(__file__))))]

    from holdfast.host.daemon import main
    from holdfast.model.errors import HoldfastError
    from holdfast.model.home import Home

    try:
        sys.exit(main(Home(os.path.abspath(sys.argv[1])), ready))
    except HoldfastError as e:
        sys.stderr.write(f"hold: {e.line()}\n")
        sys.exit(e.exit_status)
