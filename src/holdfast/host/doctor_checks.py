"""What only the host can check: its zygote, its keepers' answers, its own limits, and the logs byte by byte."""

from __future__ import annotations

import asyncio
import os

from ..log import verify
from ..model.doctor_findings import Finding, fail, ok, some, warn
from ..model.errors import HoldfastError
from ..model.journal_chain import JournalCheck
from ..model.sessions import isolation
from ..system import cgroup_probe
from .observe import session_view
from .sessions.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .daemon import Daemon


_ASKED_AT_ONCE = 32  # keepers asked in parallel: each is a small message on a line that is open already
_DESCRIPTORS_SPARE_MIN = 256  # clients, their passed-on channels and the files of a request, all at once


async def check(daemon: Daemon, deep: bool) -> list[Finding]:
    """The host's part of `hold doctor`; `deep` reads every byte of every log."""
    sessions = sorted(daemon.registry.sessions.values(), key=lambda s: str(s.manifest["created_at"]))
    answers = await _ask_all(sessions)
    findings = [
        _zygote(daemon.zygote.pid),
        judge_keepers(answers),
        judge_lost([(s.name, len(session_view.survivors_of(s))) for s in sessions if s.state == "lost"]),
        judge_exposed(_exposing(sessions, daemon.home.path)),
        judge_confirmed(confirmed=daemon.confirmed),
        judge_descriptors(len(os.listdir("/proc/self/fd")), os.sysconf("SC_OPEN_MAX")),
        await asyncio.to_thread(cgroup_probe.finding),
        judge_grants(daemon.operators.unsound(), len(daemon.operators.grants)),
    ]
    if deep:
        checked = [(s.name, await asyncio.to_thread(verify.verify, s.folder.out)) for s in sessions]
        findings.append(verify.finding(checked))
        findings.append(judge_journal(await daemon.journal.verify([])))
    return findings


async def _ask_all(sessions: list[Session]) -> list[tuple[str, str]]:
    """Name and complaint ('' when it answered) of every live session's keeper."""
    gate = asyncio.Semaphore(_ASKED_AT_ONCE)

    async def ask(session: Session) -> tuple[str, str]:
        async with gate:
            if not session.connected:
                return session.name, "its keeper is alive and closed its line"
            try:
                await session.line.act("status")
            except HoldfastError as e:
                if not session.live:
                    return session.name, ""  # it ended while it was asked: nothing is wrong with that
                return session.name, e.message
            return session.name, ""

    return list(await asyncio.gather(*(ask(s) for s in sessions if s.live)))


def _zygote(pid: int | None) -> Finding:
    if pid is None:
        return warn("zygote", "it is not running", "nothing: the next session starts it again")
    return ok("zygote", f"alive, pid {pid}")


def judge_keepers(answers: list[tuple[str, str]]) -> Finding:
    silent = [f"{name} ({complaint})" for name, complaint in answers if complaint]
    if silent:
        return fail(
            "keepers",
            f"{len(silent)} of {len(answers)} do not answer: {some(silent)}",
            "see whether it is stopped (ps -o stat), continue it with kill -CONT; hold status tells its session",
        )
    return ok("keepers", f"all {len(answers)} answer" if answers else "no session is running")


def judge_lost(lost: list[tuple[str, int]]) -> Finding:
    """Sessions whose keeper died without a record; some may still have processes."""
    if not lost:
        return ok("lost sessions", "none")
    left = [f"{name} ({count} processes)" for name, count in lost if count]
    if left:
        return warn(
            "lost sessions",
            f"keepers died and left programs running: {some(left)}",
            "hold stop SESSION ends them; hold restart SESSION starts it again",
        )
    return warn(
        "lost sessions",
        f"no keeper, and no record of the end: {some([n for n, _ in lost])}",
        "hold logs SESSION still reads them; hold restart SESSION or hold rm SESSION",
    )


def _exposing(sessions: list[Session], home: str) -> list[str]:
    real = os.path.realpath(home)
    seen = [(s.name, isolation.from_dict(view)) for s in sessions if s.live and (view := s.manifest.get("isolation"))]
    return [name for name, view in seen if isolation.exposing(view, real)]


def judge_exposed(names: list[str]) -> Finding:
    """Isolated sessions that an older version started with a folder above the home to write."""
    if names:
        return fail(
            "home from inside",
            f"isolated programs can put another home in its place: {some(names)}",
            "hold stop SESSION, and start it with a narrower --write or --cwd",
        )
    return ok("home from inside", "no isolated program can write above it")


def judge_confirmed(*, confirmed: bool) -> Finding:
    if not confirmed:
        return warn(
            "restored",
            "what the backup has this host run is off: notifications, backends, another store",
            "look at config.toml and hold backend ls, then hold restore --confirm",
        )
    return ok("restored", "nothing waits to be confirmed")


def judge_grants(unsound: list[str], sound: int) -> Finding:
    if unsound:
        return fail(
            "grants",
            f"{len(unsound)} are not signed by their maker: {some(unsound)}",
            "they grant nothing; hold timeline shows which were given",
        )
    return ok("grants", f"{sound}, each signed by its maker")


def judge_journal(verdict: JournalCheck) -> Finding:
    if not verdict.ok:
        return fail("journal's chain", f"entry {verdict.bad}: {verdict.reason}", "hold journal verify --head FILE")
    return ok("journal's chain", f"{verdict.entries} entries, {verdict.heads} signed heads")


def judge_descriptors(used: int, limit: int) -> Finding:
    if limit - used < _DESCRIPTORS_SPARE_MIN:
        return warn(
            "host descriptors",
            f"{used} of {limit} are open",
            "raise it where the host is started: ulimit -n 4096, then hold down and hold up",
        )
    return ok("host descriptors", f"{used} of {limit} are open")
