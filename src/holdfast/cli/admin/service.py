"""Run the host under systemd: started at boot, restarted when it dies. No session depends on it.

  hold service install              write holdfast.service, enable it and start it; exit 1 where systemd does not run
  hold service install --print      only show the unit
  hold service status
  hold service uninstall            stop and remove it; sessions keep running

A user gets a user unit, root a system unit; --user and --system choose. Stopping or restarting the unit ends the
daemon only: KillMode=process leaves keepers and programs running.
"""

from __future__ import annotations

import os
import sys
import time

from ...client._sync.host import Host
from ...client.admin import systemd_manager, systemd_unit
from ...client.admin.systemd_service import Service
from ...model.errors import HoldfastError
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("install", "uninstall", "status"))
    parser.add_argument("--print", dest="show", action="store_true", help="only show the unit that install would write")
    parser.add_argument("--user", dest="scope", action="store_const", const=systemd_unit.USER, help="a user unit")
    parser.add_argument(
        "--system", dest="scope", action="store_const", const=systemd_unit.SYSTEM, help="a system unit (root)"
    )
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    scope = args.scope or systemd_unit.choose(
        os.getuid(), user_manager=systemd_manager.user_manager(), system_manager=systemd_manager.system_manager()
    )
    if scope == systemd_unit.SYSTEM and os.getuid() != 0 and not args.show and args.action != "status":
        raise HoldfastError("not_allowed", "only root can write a system unit", "leave --system out, or use sudo")
    service = Service(scope, Host(autostart=False))
    if args.show:
        sys.stdout.write(service.text())
        return 0
    return {"install": _install, "uninstall": _uninstall, "status": _status}[args.action](service, args)


def _install(service: Service, args: argparse.Namespace) -> int:
    service.write()
    started = service.start(time.monotonic) if service.manager.reachable else None
    to_run = [] if started else service.commands_left()
    if args.json:
        printing.print_json({**_facts(service), "pid": started, "to_run": to_run})
        return 0 if started else 1
    print(f"{service.path} is written")
    if started:
        print(f"the host runs as {systemd_unit.NAME}, pid {started}")
    else:
        whose = "your service manager is" if service.scope == systemd_unit.USER else "systemd is"
        printing.note(
            f"hold: the host was not started: {whose} not reachable from here; run this where it is reachable:"
        )
        for line in to_run:
            print(f"  {line}")
    _hint(service)
    return 0 if started else 1


def _hint(service: Service) -> None:
    if service.scope == systemd_unit.USER and not service.lingers:
        printing.note("it keeps running after a logout only with lingering: loginctl enable-linger")


def _uninstall(service: Service, args: argparse.Namespace) -> int:
    service.remove()
    if args.json:
        printing.print_json(_facts(service))
    else:
        print(f"{service.path} is removed; sessions keep running, and the next command starts a host")
    return 0


def _status(service: Service, args: argparse.Namespace) -> int:
    facts = _facts(service)
    if args.json:
        printing.print_json(facts)
    else:
        for line in _lines(facts):
            print(printing.safe(line))
        _hint(service)
    if not facts["installed"]:
        return 3
    return 0 if facts["active"] else 1


def _facts(service: Service) -> dict[str, Any]:
    state = service.state()
    return {"unit": service.path, "scope": service.scope, "reachable": service.manager.reachable, **state}


def _lines(facts: dict[str, Any]) -> list[str]:
    if not facts["installed"]:
        return [f"{systemd_unit.NAME} is not installed ({facts['unit']}); hold service install"]
    lines = [f"{facts['unit']}, home {facts['home']}"]
    if not facts["reachable"]:
        return [*lines, "its service manager is not reachable from here"]
    lines.append(
        f"{'enabled' if facts['enabled'] else 'not enabled'}, "
        + (f"running as pid {facts['pid']}" if facts["active"] else "not running")
    )
    if facts["daemon_pid"] and facts["daemon_pid"] != facts["pid"]:
        lines.append(f"another daemon serves this home, pid {facts['daemon_pid']}; hold service install replaces it")
    return lines
