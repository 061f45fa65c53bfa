"""Check this machine, this home and its host, and say what to fix. Exit 1 if a check fails.

  hold doctor
  hold doctor --deep       also verify the checksums of every log

It starts nothing and changes nothing.
"""

from __future__ import annotations

import os
import sys
import time

from ...client._sync.host import Host
from ...client.admin.doctor import examine
from ...model.doctor_findings import failed
from ...version import VERSION
from ..agents.connect import folder_of_project
from ..agents.connecting import outdated
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from ...model.doctor_findings import Finding

_STYLE = {"ok": "green", "warn": "yellow", "fail": "red"}
_SIGN = {"ok": "✓", "warn": "!", "fail": "✗"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--deep", action="store_true", help="verify the checksums of every log")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    host = Host(autostart=False)
    findings = examine(host, deep=args.deep, now=time.time())
    findings += outdated.findings(os.environ, host.home.path, folder_of_project())
    if args.json:
        document = {"ok": not failed(findings), "version": VERSION, "home": host.home.path, "checks": findings}
        printing.print_json(document)
    elif sys.stdout.isatty():
        _page(findings)
    else:
        for f in findings:
            print("\t".join(printing.safe(f[key] or "-") for key in ("status", "name", "seen", "advice")))
    return 1 if failed(findings) else 0


def _page(findings: list[Finding]) -> None:
    width = max(len(str(f["name"])) for f in findings)
    for f in findings:
        style = _STYLE[str(f["status"])]
        print(
            f"{printing.paint(_SIGN[str(f['status'])], style)} "
            f"{str(f['name']).ljust(width)}  {printing.safe(f['seen'])}"
        )
        if f["advice"]:
            print(f"  {'':{width}}  {printing.paint('→ ' + printing.safe(f['advice']), style)}")
    counts = {status: sum(f["status"] == status for f in findings) for status in _STYLE}
    print()
    if counts["fail"]:
        print(printing.paint(f"{counts['fail']} of {len(findings)} checks failed", "red"))
    else:
        warned = f", {counts['warn']} with a warning" if counts["warn"] else ""
        print(printing.paint(f"{len(findings)} checks, none failed{warned}", "green"))
