"""Run the guided tour: each step is done for real in a temporary home, and its result is checked. Takes a minute.

Clients and the daemon are killed; a build keeps running and none of its output is missing; a server's port has an
owner; an unattended prompt is found and answered. A person takes over from an agent, the journal is verified, and a job
that is killed in the middle is finished without doing anything twice. A task is done when its verification passes, a
new worker continues from a brief of 500 tokens, and what a killed agent started is found by the next one. If a check
fails, the tour names it and exits with 1. It leaves nothing behind.
"""

from __future__ import annotations

import signal
import sys
import time

from ...ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any, NoReturn

    from .demo_home import Step


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    return play(story(), show=not args.json)


def story() -> list[Step]:
    """All steps, in order."""
    from . import agent_story, durable_story, session_story, sharing_story, task_story

    return [
        *session_story.STEPS,
        *sharing_story.STEPS,
        *durable_story.STEPS,
        *task_story.STEPS,
        *agent_story.STEPS,
        *session_story.END,
    ]


def play(steps: Sequence[Step], *, show: bool) -> int:
    """Run the steps in order in a temporary home until the first failed check; always clean up."""
    from .demo_home import DemoFailed, DemoHome

    began, told = time.monotonic(), []
    with _ending_cleanly(), DemoHome() as stage:
        if show:
            print(printing.paint("Holdfast: what it promises, run and checked", "bold"))
            print(printing.paint(f"in {stage.home}, which is removed afterwards\n", "dim"))
        for number, (title, step) in enumerate(steps, 1):
            at = time.monotonic()
            broken: DemoFailed | None = None
            try:
                seen = step(stage)
            except DemoFailed as e:
                broken, seen = e, str(e)
            except Exception as e:  # noqa: BLE001  (any surprise is a broken promise, told as loudly)
                broken = DemoFailed("this step completes", surprise=e, after=stage.last)
                seen = str(broken)
            result = {
                "step": number,
                "title": title,
                "ok": broken is None,
                "seen": seen,
                "seconds": round(time.monotonic() - at, 2),
            }
            told.append(result | ({"promise": broken.promise, "details": broken.details} if broken else {}))
            if show:
                _show(result, broken)
            if broken:
                break
    return _finish(told, len(steps), time.monotonic() - began, show=show)


class _ending_cleanly:  # noqa: N801  (reads as the context it is)
    """Makes TERM and HUP unwind as Ctrl-C does, so that the temporary home is removed."""

    def __enter__(self) -> None:
        self._before = {n: signal.signal(n, self._end) for n in (signal.SIGTERM, signal.SIGHUP)}

    @staticmethod
    def _end(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _show(result: dict[str, Any], broken: Exception | None) -> None:
    sign, style = ("✗", "red") if broken else ("✓", "green")
    print(
        f"{printing.paint(sign, style)} {result['step']:2} {printing.paint(result['title'], 'bold')}"
        f"  {printing.paint(format(result['seconds'], '.1f') + ' s', 'dim')}"
    )
    for line in str(result["seen"]).splitlines():
        print(f"     {printing.paint(printing.safe(line), 'red' if broken else '')}")
    sys.stdout.flush()


def _finish(told: list[dict[str, Any]], steps: int, seconds: float, *, show: bool) -> int:
    kept = all(t["ok"] for t in told) and len(told) == steps
    if not show:
        printing.print_json({"ok": kept, "seconds": round(seconds, 2), "steps": told})
    elif kept:
        print(printing.paint(f"\nall {steps} kept, in {seconds:.0f} s", "green"))
    else:
        print(printing.paint(f"\na check failed at step {len(told)} of {steps}: {told[-1]['title']}", "red"))
        printing.note("hold: the demo failed; run hold doctor to find the cause")
    return 0 if kept else 1
