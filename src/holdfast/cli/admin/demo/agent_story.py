"""Demo steps with an agent over MCP: it is killed, and the next one finds what it started. Needs the `mcp` extra."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from .demo_home import HOLD, DemoFailed, DemoHome, Step
from .task_story import SERVER

_ERA = "2025-06-18"  # of the protocol: one that every client speaks


class _Agent:
    """A minimal client of `hold mcp`."""

    def __init__(self, stage: DemoHome) -> None:
        self._stage, self._n = stage, 0
        self.process = subprocess.Popen(
            [*HOLD, "mcp", "--name", "scout"],
            env=stage.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        about = {"protocolVersion": _ERA, "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}}
        self._ask("initialize", about)
        self._tell({"method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> Any:
        """The tool's result, as data."""
        self._stage.last = f"the MCP tool {tool}"
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        self._stage.check(not result.get("isError"), f"the tool {tool} succeeds", result=result)
        return result["structuredContent"]

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._n += 1
        self._tell({"id": self._n, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self._n and "method" not in message:
                self._stage.check("result" in message, f"{method} is answered", message=message)
                return message["result"]
        raise DemoFailed(f"{method} is answered")

    def _tell(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def an_agent_is_killed(stage: DemoHome) -> str:
    agent = _Agent(stage)
    try:
        made = agent.call("run", command=shlex.join([sys.executable, "-c", SERVER]), name="api", why="to try it")
        port = int(stage.until(lambda: stage.hold("logs", "api").strip(), "the server says its port"))
        stage.hold("wait", "api", "--for", f"port={port}", "--timeout", "30")
        pid = stage.ask("status", "api")["pid"]
    finally:
        agent.kill()
    again = _Agent(stage)
    try:
        found = again.call("ports", port=port)
        stage.check(str(pid) in json.dumps(found), "the next one finds it, the same pid", ports=found, made=made)
    finally:
        again.kill()
    who = stage.ask("who", "api")
    started = [e for e in stage.ask("timeline", "api") if e.get("kind") == "start"]
    stage.check("scout" in json.dumps(started), "and its start is the agent's own act", timeline=started, who=who)
    return f"scout started a server on :{port} and was killed; the next one asked for that port and found pid {pid}"


STEPS: list[Step] = [("An agent over MCP is killed; what it started is found again", an_agent_is_killed)]
if find_spec("mcp") is None:  # the extra: pip install 'holdfast[mcp]'
    STEPS = []
