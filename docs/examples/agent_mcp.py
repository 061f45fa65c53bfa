"""An agent over MCP that loses its process, its memory and its connection in turn, and finishes its job.

    pip install 'holdfast[mcp]'
    python docs/examples/agent_mcp.py

It needs no model: `next_call` of agent_job.py is what a model would be asked. What counts is where its knowledge comes
from: each round begins with `resume`, and nothing is kept from one conversation to the next.
"""

from __future__ import annotations

import os
from typing import Any

import agent_job
from mcp import Client, StdioServerParameters


async def work(calls: int | None) -> bool:
    """Work until it is done, or for so many calls. A new connection, and an empty memory."""
    command, args = agent_job.server()
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ), cwd=agent_job.FOLDER)
    conversation: list[tuple[str, Any]] = []
    async with Client(server) as client:
        while calls is None or len(conversation) < calls:
            call = agent_job.next_call(conversation)
            if call is None:
                return True
            answer = await client.call_tool(*call)
            if answer.is_error:
                raise RuntimeError(f"{call[0]}: {answer.structured_content}")
            conversation.append((call[0], answer.structured_content))
    return False


if __name__ == "__main__":
    agent_job.story(__file__, work)
