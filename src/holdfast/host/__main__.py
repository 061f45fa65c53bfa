"""Entry of the daemon: `python …/host/__main__.py HOME [READY_FD]`; started by the first client that needs it."""

import os
import sys

if __name__ == "__main__":
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path[:] = [root, *(p for p in sys.path if p not in ("", os.path.dirname(os.path.abspath(__file__))))]

    from holdfast.host.daemon import main
    from holdfast.model.errors import HoldfastError
    from holdfast.model.home import Home

    try:
        sys.exit(main(Home(os.path.abspath(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else -1))
    except HoldfastError as e:
        print(f"hold: {e.line()}", file=sys.stderr)
        sys.exit(e.exit_status)
