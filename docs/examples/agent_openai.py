"""The same with the OpenAI Agents SDK: its own loop, its own MCP client, and a model that only follows `resume`.

    pip install 'holdfast[mcp,openai]'
    python docs/examples/agent_openai.py

For a real model, leave `model=` out and put "begin with resume, and do what next_action says" into the instructions.
"""

from __future__ import annotations

import json
import os
from typing import Any

import agent_job
from agents import Agent, MaxTurnsExceeded, ModelResponse, RunConfig, Runner, Usage
from agents.mcp import MCPServerStdio
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class Follower(Model):
    """A model without a mind: what it says next follows from the conversation that the SDK gives it."""

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        given = options.get("input", args[1] if len(args) > 1 else [])
        made = [item["name"] for item in given if _is(item, "function_call")]
        results = [json.loads(_text(item["output"])) for item in given if _is(item, "function_call_output")]
        call = agent_job.next_call(list(zip(made, results, strict=True)))
        return _response(_call(*call) if call else _message("done"))

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def _is(item: Any, kind: str) -> bool:
    return isinstance(item, dict) and item.get("type") == kind


def _text(output: Any) -> str:
    """A tool's result as the SDK hands it on: a text, or a list with one."""
    return output if isinstance(output, str) else "".join(part["text"] for part in output)


def _call(tool: str, arguments: dict[str, Any]) -> ResponseFunctionToolCall:
    id = f"call_{os.urandom(6).hex()}"
    return ResponseFunctionToolCall(type="function_call", call_id=id, name=tool, arguments=json.dumps(arguments))


def _message(text: str) -> ResponseOutputMessage:
    words = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[words])


def _response(item: Any) -> ModelResponse:
    return ModelResponse(output=[item], usage=Usage(), response_id=None)


async def work(calls: int | None) -> bool:
    """Work until it is done, or for so many calls: each is a turn of the SDK's loop."""
    command, args = agent_job.server()
    params: Any = {"command": command, "args": args, "env": dict(os.environ), "cwd": str(agent_job.FOLDER)}
    # Its client gives up on a call after 5 s by itself, which every call of ours keeps to; a busy machine may not.
    async with MCPServerStdio(params, use_structured_content=True, client_session_timeout_seconds=60) as server:
        agent = Agent(name="publisher", model=Follower(), mcp_servers=[server])
        turns = 1000 if calls is None else calls
        try:
            await Runner.run(agent, "Publish it.", max_turns=turns, run_config=RunConfig(tracing_disabled=True))
        except MaxTurnsExceeded:
            return False
        return True


if __name__ == "__main__":
    agent_job.story(__file__, work)
