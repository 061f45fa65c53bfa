"""An MCP server with the SDK's own means: a tool that does nothing, and one that runs a command by polling tmux.

Run as a program by bench/mcp.py, with the tmux words to use as its argument.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("peers")
_POLL_S = 0.5  # what agent runtimes that drive tmux use


@server.tool()
async def noop() -> dict[str, int]:
    """Nothing: what the protocol, the SDK and two pipes cost."""
    return {"exit_code": 0}


@server.tool()
async def poll(command: str, n: int) -> dict[str, int]:
    """Type a command, then capture the pane every half second until its end mark is on the screen."""
    tmux, pane = json.loads(sys.argv[1])
    mark = f"done-{n}-"
    await asyncio.to_thread(subprocess.run, [*tmux, "send-keys", "-t", pane, f"{command}; echo {mark}$?", "Enter"])
    while True:
        await asyncio.sleep(_POLL_S)
        shown = await asyncio.to_thread(
            subprocess.run, [*tmux, "capture-pane", "-p", "-t", pane], stdout=subprocess.PIPE
        )
        found = re.search(rf"^{mark}(\d+)$", shown.stdout.decode(), re.MULTILINE)
        if found:
            return {"exit_code": int(found[1])}


if __name__ == "__main__":
    server.run()
