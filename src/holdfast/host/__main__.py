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

    from holdfast.model.home import Home
    from holdfast.system import disk_reserve, kernel, owner_trust

    home, registration = Home(os.path.abspath(sys.argv[1])), ""
    try:
        # Started from inside a session, it is no part of that from here on; to read the rest takes a while.
        os.makedirs(home.path, mode=0o700, exist_ok=True)
        if owner_trust.home_fault(home.path) is None:
            disk_reserve.room_to_start(home.reserve)
            registration = kernel.register(home.roles)
    except OSError:
        pass  # a home that cannot be used: the daemon itself says so

    from holdfast.host.daemon import main
    from holdfast.model.errors import HoldfastError

    try:
        status = main(home, ready)
    except HoldfastError as e:
        sys.stderr.write(f"hold: {e.line()}\n")
        status = e.exit_status
    finally:
        if registration and os.path.exists(registration):  # another one serves, or this one could not
            os.unlink(registration)
    sys.stderr.flush()
    os._exit(status)  # all that matters is closed: to take the interpreter apart is 50 ms that `hold down` would wait
