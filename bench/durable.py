"""Durable steps: how many a second beside other engines, what concurrency adds, and how often each flushes the disk."""

from __future__ import annotations

import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from . import proc
from .ours import Ours, clean_env, until
from .result import Result, Target, number, ratio, spread

KEY = "durable"
_ROOT = Path(__file__).resolve().parent.parent
_WARM_UP = 64
_ANSWER_S = 300.0  # a round takes seconds; on a disk that is busy with others, tens of them
_CALLERS = 64
_COUNTED = 100  # steps under strace
_SQLITE = {"DBOS": "dbos", "LangGraph SqliteSaver": "langgraph", "LangGraph, DeltaChannel": "langgraph-delta"}


class Engine:
    """One engine in a process of its own (bench/steppers.py). A context manager."""

    def __init__(self, name: str, where: str, **env: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.steppers", name, where],
            cwd=_ROOT,
            env=clean_env(**env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.pid = self._process.pid
        self._rounds = 0
        if self._line() != "ready":
            raise RuntimeError(f"{name} did not start: {self._told()}")

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], _ANSWER_S)[0]:
            raise TimeoutError(f"{self._process.args!r} did not answer")
        return self._process.stdout.readline().strip()

    def _told(self) -> str:
        self._process.kill()
        return self._process.communicate()[1][-2000:]

    def rate(self, steps: int, kind: str = "unsafe") -> float:
        """Run so many steps; how many that was a second."""
        self._rounds += 1
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps} {kind}-{self._rounds}\n")
        answer = self._line()
        if not answer:
            raise RuntimeError(f"{self._process.args!r} ended: {self._told()}")
        return steps / float(answer)


def measure(quick: bool) -> list[Result]:
    rounds, steps = (2, 64) if quick else (7, 256)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hold-bench-durable-"))
        home = stack.enter_context(Ours())
        engines = {name: stack.enter_context(Engine(name, home.path)) for name in ("ours", "each")}
        for peer, name in _SQLITE.items():
            where = f"sqlite:///{folder}/{name}.db" if name == "dbos" else f"{folder}/{name}.db"
            engines[peer] = stack.enter_context(Engine(name, where))
        for name in ("one", "together"):
            engines[name] = stack.enter_context(Engine(name, f"sqlite:///{folder}/{name}.db"))
        rates = _interleaved(engines, rounds, steps)
        flushes = _flushes(engines, home.daemon_pid())
    one_by_one = _sequential(rates, rounds, steps)
    return [one_by_one, _batch(rates, one_by_one), _concurrent(rates), flushes, *_postgres(rounds, steps)]


def _interleaved(engines: Mapping[str, Engine], rounds: int, steps: int) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {name: [] for name in engines}
    for engine in engines.values():
        engine.rate(_WARM_UP)
    for _ in range(rounds):
        for name, engine in engines.items():
            # Many at once are done sooner: more of them, so that a round is not over before it has begun.
            rates[name].append(engine.rate(steps * 4 if name == "together" else steps))
    return rates


def _compared(
    rates: Mapping[str, list[float]], peers: Sequence[str], ours: str = "ours"
) -> tuple[dict[str, float], dict[str, float]]:
    return (
        {peer: statistics.median(rates[peer]) for peer in peers},
        {peer: ratio(rates[ours], rates[peer]) for peer in peers},
    )


def _batch(rates: Mapping[str, list[float]], one_by_one: Result) -> Result:
    """The same comparison and the same targets, for steps that are known beforehand."""
    peers, ratios = _compared(rates, list(one_by_one.peers), "each")
    limits = [target.limit for target in one_by_one.targets]
    return replace(
        one_by_one,
        key=one_by_one.key + "-batch",
        name=one_by_one.name.replace("one after the other", "as a batch (`run.each`)"),
        ours=statistics.median(rates["each"]),
        peers=peers,
        ratios=ratios,
        targets=tuple(
            Target(f"ours ÷ {peer}", ratios[peer], limit, "higher") for peer, limit in zip(peers, limits, strict=True)
        ),
        notes=(
            "in the same rounds as the row above, against the same runs of the peers",
            "every intent is on disk before its body runs, every outcome before the next body: both in one commit",
            f"ours: {spread(rates['each'])}; that is {number(ratio(rates['each'], rates['ours']))} times `run.step`",
        ),
    )


def _sequential(rates: Mapping[str, list[float]], rounds: int, steps: int) -> Result:
    peers, ratios = _compared(rates, list(_SQLITE))
    limits = {"DBOS": 4.0, "LangGraph SqliteSaver": 4.0, "LangGraph, DeltaChannel": 1.5}
    return Result(
        key=f"{KEY}-sqlite",
        name="durable steps, one after the other, SQLite",
        unit="steps/s",
        ours=statistics.median(rates["ours"]),
        peers=peers,
        ratios=ratios,
        targets=tuple(Target(f"ours ÷ {peer}", ratios[peer], limit, "higher") for peer, limit in limits.items()),
        notes=(
            f"{rounds} rounds of {steps} steps, each way in turn, all on one disk; a step's body returns 2 KB at once",
            "ours: `run.step` of the SDK, intent (2 KB of arguments) and outcome (2 KB) each on disk, through the host",
            "the peers, in their own process, write the outcome alone, as durably: synchronous=FULL by their defaults",
            "LangGraph with durability=sync, a new thread each round: its state has at most a round's messages",
            f"ours without SDK and socket, the work plane alone: {spread(rates['one'])}; that is "
            + ", ".join(f"{number(ratio(rates['one'], rates[peer]))} times {peer}" for peer in _SQLITE),
            *(f"{name}: {spread(rates[name])}" for name in ("ours", *_SQLITE)),
        ),
    )


def _concurrent(rates: Mapping[str, list[float]]) -> Result:
    times = ratio(rates["together"], rates["one"])
    return Result(
        key=f"{KEY}-callers",
        name=f"durable steps, {_CALLERS} callers at once, SQLite",
        unit="steps/s",
        ours=statistics.median(rates["together"]),
        peers={"one caller": statistics.median(rates["one"])},
        ratios={"one caller": times},
        targets=(Target(f"{_CALLERS} callers ÷ one", times, 8.0, "higher"),),
        notes=(
            "the work plane in one process, a run for each caller; commits that wait together share a flush",
            f"{_CALLERS} callers: {spread(rates['together'])}",
            f"one caller: {spread(rates['one'])}",
        ),
    )


# -- flushes -----------------------------------------------------------------------------------------------------------


@contextmanager
def _counting(pid: int) -> Iterator[list[int]]:
    """How many flushes a process asks for meanwhile; the list gets the number when it is over."""
    found: list[int] = []
    with tempfile.NamedTemporaryFile(prefix="hold-bench-strace-") as log:
        words = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o", log.name]
        tracer = subprocess.Popen([*words, "-p", str(pid)], stderr=subprocess.PIPE)
        try:
            _traced(pid, tracer)
            yield found
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.communicate(timeout=30)
        # A call that others interrupt in the log has a second line, `resumed`.
        found.append(sum("sync(" in line for line in Path(log.name).read_text().splitlines()))


def _traced(pid: int, tracer: subprocess.Popen[bytes]) -> None:
    """Until every thread has its tracer."""

    def attached() -> bool:
        if tracer.poll() is not None:
            raise RuntimeError("strace ended; may it trace here?")
        threads = Path(f"/proc/{pid}/task").iterdir()
        return all(f"TracerPid:\t{tracer.pid}" in (t / "status").read_text() for t in threads)

    until(attached)


def _flushes(engines: Mapping[str, Engine], host: int) -> Result:
    counts: dict[str, float] = {}
    for name, engine, kind in (
        ("ours", engines["ours"], "unsafe"),
        ("none", engines["ours"], "none"),
        ("each", engines["each"], "unsafe"),
        *((peer, engines[peer], "unsafe") for peer in _SQLITE),
    ):
        hosted = engine in (engines["ours"], engines["each"])
        if hosted:
            proc.settle([host], 1.0)  # past the moment when an idle host folds its log into the database
            engine.rate(1, "plain")  # begins the log anew
        with _counting(host if hosted else engine.pid) as found:
            engine.rate(_COUNTED, kind)
        counts[name] = found[0] / _COUNTED
    return Result(
        key=f"{KEY}-flushes",
        name="flushes of the disk for a durable step, SQLite",
        unit="fdatasync",
        ours=counts["ours"],
        peers={peer: counts[peer] for peer in _SQLITE},
        targets=(
            Target("a step with effect", counts["ours"], 2.0, "lower", ""),
            Target("a step with effect none", counts["none"], 1.0, "lower", ""),
        ),
        notes=(
            f"fsync and fdatasync in {_COUNTED} steps, counted by `strace`; ours: all of the host's",
            "beside them: three when 16 MB of log are folded in (some 300 steps), and one for each periodic checkpoint",
            f"a step with effect none, ours: {number(counts['none'])}; one of a batch: {number(counts['each'])}",
        ),
    )


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def _postgres(rounds: int, steps: int) -> list[Result]:
    from tests.support.postgres import Server

    server = Server(on_disk=True, fsync="on")  # as servers are
    try:
        with ExitStack() as stack:
            one, other = stack.enter_context(Ours()), stack.enter_context(Ours())  # a home has one store
            ours = stack.enter_context(Engine("ours", server.url(), HOLDFAST_HOME=one.path))
            each = stack.enter_context(Engine("each", server.url(), HOLDFAST_HOME=other.path))
            dbos = stack.enter_context(Engine("dbos", server.url()))
            absurd = stack.enter_context(Engine("absurd", _with_absurd(server.url())))
            rates = _interleaved({"ours": ours, "each": each, "DBOS": dbos, "absurd": absurd}, rounds, steps)
    finally:
        server.close()
    peers, ratios = _compared(rates, ["DBOS", "absurd"])
    one_by_one = Result(
        key=f"{KEY}-postgres",
        name="durable steps, one after the other, PostgreSQL",
        unit="steps/s",
        ours=statistics.median(rates["ours"]),
        peers=peers,
        ratios=ratios,
        targets=(
            Target("ours ÷ DBOS", ratios["DBOS"], 3.0, "higher"),
            Target("ours ÷ absurd", ratios["absurd"], 1.0, "higher"),
        ),
        notes=(
            f"{rounds} rounds of {steps} steps, each way in turn, on one server (fsync on), over loopback",
            "ours: two commits, intent and outcome, of one statement each; DBOS and absurd write the outcome alone",
            *(f"{name}: {spread(rates[name])}" for name in ("ours", "DBOS", "absurd")),
        ),
    )
    return [one_by_one, _batch(rates, one_by_one)]


def _with_absurd(url: str) -> str:
    """Its schema, put in by its own tool, which runs psql."""
    tool = os.path.join(os.path.dirname(sys.executable), "absurdctl")
    subprocess.run([tool, "init", "-d", url], check=True, stdout=subprocess.DEVNULL, timeout=_ANSWER_S)
    return url
