"""Runners of tests: a project in a folder, backends that are shell scripts, and real `hold work run` processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.support.home import HOLD, HomeForTests, until

Json = dict[str, Any]
DEADLINE_S = 100.0


class Project:
    """`add` tasks, `backend` scripts, `runner` processes."""

    def __init__(self, hold: HomeForTests, folder: Path, name: str = "demo") -> None:
        self.hold, self.name, self.root, self.bin = hold, name, folder / "project", folder / "bin"
        self.root.mkdir()
        self.bin.mkdir()
        self.folder = folder
        # No other `claude` or `codex` than a test's own.
        path = [str(self.bin), *(p for p in os.environ["PATH"].split(":") if not _agents_in(p))]
        hold.env["PATH"] = os.pathsep.join(path)
        hold.env["HOLDFAST_PROJECT"] = name
        self.runners: list[Runner] = []
        self.tasks = hold.host.work.tasks
        self.tasks.init(name, root=str(self.root))

    def script(self, name: str, text: str) -> Path:
        """A program on PATH."""
        path = self.bin / name
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(0o755)
        return path

    def backend(self, name: str, text: str, *words: str, **options: Any) -> None:
        self.tasks.add_backend(name, [str(self.script(name, text)), *words], **options)

    def policy(self, **rules: Any) -> None:
        self.tasks.set_policy(rules, project=self.name)

    def add(self, id: str, *, after: list[str] | None = None, **contract: Any) -> None:
        self.tasks.add(f"task {id}", id=id, after=after or [], contract=contract, project=self.name)

    def show(self, id: str = "1") -> Json:
        found: Json = self.tasks.show(id, project=self.name)
        return found

    def status(self, id: str = "1") -> str:
        return str(self.show(id)["status"])

    def wait(self, status: str, id: str = "1") -> Json:
        until(lambda: self.status(id) == status, timeout=DEADLINE_S, pause=0.05)
        return self.show(id)

    def runner(self, *options: str) -> Runner:
        made = Runner(self, len(self.runners) + 1, *options)
        self.runners.append(made)
        return made

    def run_once(self, *options: str) -> Runner:
        made = self.runner("--once", *options)
        made.wait()
        return made

    def state(self) -> str:
        """What everybody knows, for a test that failed: tasks, sessions, the last words of runners and of the daemon."""
        told = [f"task: {json.dumps(self.show(t['task_id']))}" for t in self.tasks.ls(project=self.name)]
        told += [f"session: {s}" for s in self.hold.host.sessions(all=True)]
        for runner in self.runners[-3:]:
            told += [
                f"{runner.path.name}, ended {runner.process.poll()}:",
                runner.path.read_text()[-3000:],
                runner.errors.read_text()[-3000:],
            ]
        told += ["daemon:", (self.hold.path / "host.log").read_text()[-6000:]]
        return "\n".join(told)

    def close(self) -> None:
        for runner in self.runners:
            if runner.process.poll() is None:
                runner.process.kill()
            runner.process.wait()


class Runner:
    """One `hold work run --json`, its events in a file."""

    def __init__(self, project: Project, n: int, *options: str) -> None:
        self.path = project.folder / f"runner-{n}.events"
        self.errors = project.folder / f"runner-{n}.errors"
        words = [*HOLD, "work", "run", "--json", "--name", f"runner-{n}", "--lease", "4s", *options]
        with open(self.path, "wb") as out, open(self.errors, "wb") as err:
            self.process = subprocess.Popen(words, env=project.hold.env, cwd=project.root, stdout=out, stderr=err)

    @property
    def events(self) -> list[Json]:
        whole = [line for line in self.path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [json.loads(line) for line in whole]

    def saw(self, event: str, task: str | None = None) -> Json:
        """The first such event, once it is there."""

        def look() -> Json | None:
            if self.process.poll() is not None and not self._find(event, task):
                raise AssertionError(f"it ended without {event}: {self.events} {self.errors.read_text()}")
            return self._find(event, task)

        found: Json = until(look, timeout=DEADLINE_S, pause=0.02)
        return found

    def _find(self, event: str, task: str | None) -> Json | None:
        return next((e for e in self.events if e.get("event") == event and task in (None, e.get("task"))), None)

    def names(self) -> list[str]:
        return [str(e.get("event")) for e in self.events]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE_S)

    def leave(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)


def runner_of(project: Project, operator: str, *options: str) -> Runner:
    """A runner that somebody else than the home's person starts."""
    project.hold.env["HOLDFAST_OPERATOR"] = operator
    try:
        return project.runner(*options)
    finally:
        del project.hold.env["HOLDFAST_OPERATOR"]


def _agents_in(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in ("claude", "codex"))
