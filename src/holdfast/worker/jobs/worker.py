"""A worker's life: look for a run, keep its lease while its job runs, say how it ended; leave when asked to.

    done       the job returned: its value is the run's outcome
    failed     the job raised: the error is the run's outcome
    parked     a step is in doubt that no rule settles: the run waits for a person, the worker goes on with others
    left       the worker was asked to stop: no further step is begun, and the lease is given back
    fenced     somebody else is the writer now: nothing more is written, and the worker ends (exit 5)

A worker that dies otherwise while it holds a run has crashed (work/runs/crashes.py). So that a deploy does not look
like that, who was asked to stop says so at once, before it is killed for taking too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import socket
import threading
import time
from typing import Any

from ...client._async.host import AsyncHost
from ...client._async.work import own_name
from ...client._sync.host import Host
from ...client.jobs import Jobs
from ...client.process import this_process
from ...model.errors import HoldfastError
from ...model.limits import WORKER_LOOK_S
from ...model.work.effects import Fenced, WorkerStopping
from ..event_lines import Events
from . import left_marks
from .run_end import Ending, ending

Json = dict[str, Any]
_LEAST_PAUSE_S = 0.05  # a lease that runs out in this moment is looked at again, but not in a loop
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # from a supervisor, a person, and the end of their terminal


class Worker:
    """`run()` until it is asked to stop, or with `once` until nothing is left to do."""

    def __init__(
        self, jobs: Jobs, events: Events, *, standby: bool, lease: float, name: str | None = None, once: bool = False
    ) -> None:
        self._jobs, self._events, self._standby, self._lease, self._once = jobs, events, standby, lease, once
        self.name = name or own_name()
        self._stopping = threading.Event()
        self._signal = 0
        self._current: Any = None  # the run at hand
        self._parked = 0  # runs of its jobs that wait for a person, at the last look
        self._waiting: list[Json] = []  # the same of all jobs, as people were told

    def run(self) -> int:
        """The process's exit status."""
        self._listen()
        with Host() as host:
            self._events.tell("ready", worker=self.name, jobs=self._jobs.names, standby=self._standby)
            while not self._stopping.is_set():
                made = host.work.claim(
                    self._jobs.names,
                    worker=self.name,
                    lease=self._lease,
                    standby=self._standby,
                    max_crashes=self._jobs.max_crashes,
                    left=left_marks.marks(host.home.path, time.time()),
                )
                if made["run"] is not None:
                    self._work_at(host, made)
                    continue
                self._parked = made["parked"]
                self._look_at_parked(host, self._parked)
                if self._once and not made["active"]:
                    break
                pause_s = WORKER_LOOK_S if made["next_in_s"] is None else made["next_in_s"]
                self._stopping.wait(max(_LEAST_PAUSE_S, min(WORKER_LOOK_S, pause_s)))
        if self._once and self._parked:
            self._events.tell("waiting", parked=self._parked)
        self._events.tell("stopped", worker=self.name)
        return 130 if self._signal == signal.SIGINT else 1 if self._once and self._parked else 0

    def _listen(self) -> None:
        """Signals interrupt the job only where Python can; the thread hears of them also while a body is in C."""
        for number in _STOPS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, self._stop)
        ours, kernels = socket.socketpair()
        kernels.setblocking(False)
        signal.set_wakeup_fd(kernels.detach(), warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))  # what a job's child is sent is not for us
        threading.Thread(target=self._heard, args=(ours,), name="signals", daemon=True).start()

    def _heard(self, signals: socket.socket) -> None:
        while numbers := signals.recv(16):
            if not {*_STOPS}.isdisjoint(numbers):
                self._say_leaving(self._current)

    def _say_leaving(self, run: Any) -> None:
        """In the store, over a connection of its own: from now on no death of ours is the job's doing."""
        if run is not None:
            with contextlib.suppress(HoldfastError), Host() as beside:
                beside.work.call("run_leaves", run=run.id, epoch=run.epoch)

    def _stop(self, number: int, frame: object) -> None:
        """Leave at the next step. Asked twice, at once: what is under way is in doubt then."""
        if self._stopping.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self._signal = number
        self._stopping.set()
        if self._current is not None:
            self._current.leaving = True

    def _hold(self, run: Any) -> Any:
        self._current = run
        run.leaving = self._stopping.is_set()
        if run.leaving:  # asked in between
            self._say_leaving(run)
        return run

    def _work_at(self, host: Host, made: Json) -> None:
        about = {"run": made["run"], "job": made["job"], "epoch": made["epoch"]}
        if made["resumed"]:
            self._events.tell("taken_over", **about, before=made["before"], in_doubt=made["in_doubt"])
        else:
            self._events.tell("begun", **about)
        job = self._jobs[made["job"]]
        try:
            waits = inspect.iscoroutinefunction(job)
            end = asyncio.run(self._await(job, made)) if waits else self._call(host, job, made)
        except Fenced:
            self._say_leaving(self._current)
            raise
        except HoldfastError:  # the store is away, and cannot be told
            left_marks.mark(host.home.path, this_process()["id"])
            raise
        finally:
            self._current = None
        if end.how == "parked":
            self._look_at_parked(host, 1)
        facts = {"step": end.value} if end.how == "parked" else {"outcome": end.value} if end.how == "done" else {}
        self._events.tell(end.how, **about, **facts, message=end.message)

    def _look_at_parked(self, host: Host, count: int) -> None:
        """What waits for a person is told by the host that wrote it; here it is known that there is something."""
        if count or self._waiting:
            self._waiting = host.work.call("run_parked")

    def _call(self, host: Host, job: Any, made: Json) -> Ending:
        run, outcome, error = self._hold(host.work.held(made, self._lease, job=True)), None, None
        try:
            outcome = job(run)
        except (Exception, WorkerStopping) as e:  # noqa: BLE001 - a job may raise anything; what it means is decided below
            error = e
        unsettled = [] if isinstance(error, WorkerStopping) else run.unsettled()
        end = ending(outcome, error, unsettled)
        if end.how == "done":
            run.finish(end.value)
        elif end.how == "failed":
            run.fail(end.value)
        elif end.how == "parked":
            host.work.call("run_park", run=run.id, epoch=run.epoch, key=end.value)
        run.close()
        return end

    async def _await(self, job: Any, made: Json) -> Ending:
        """The same for a job that is a coroutine, in an event loop of its own."""
        async with AsyncHost() as host:
            run, outcome, error = self._hold(await host.work.held(made, self._lease, job=True)), None, None
            try:
                outcome = await job(run)
            except (Exception, WorkerStopping) as e:  # noqa: BLE001 - as above
                error = e
            unsettled = [] if isinstance(error, WorkerStopping) else await run.unsettled()
            end = ending(outcome, error, unsettled)
            if end.how == "done":
                await run.finish(end.value)
            elif end.how == "failed":
                await run.fail(end.value)
            elif end.how == "parked":
                await host.work.call("run_park", run=run.id, epoch=run.epoch, key=end.value)
            await run.close()
            return end
