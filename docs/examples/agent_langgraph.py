"""The same with LangGraph: a graph of a model and its tools, which are the tools of the MCP server.

    pip install 'holdfast[mcp]' langgraph
    python docs/examples/agent_langgraph.py

`follow` is the model: for a real one, bind the tools to it and tell it to begin with `resume` and do what `next_action`
says.
"""

from __future__ import annotations

import json
import os
from typing import Any

import agent_job
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from mcp import Client, StdioServerParameters


def follow(state: MessagesState) -> dict[str, Any]:
    """A model without a mind: what it says next follows from the conversation that the graph gives it."""
    results = [(str(m.name), json.loads(str(m.content))) for m in state["messages"] if m.type == "tool"]
    call = agent_job.next_call(results)
    if call is None:
        return {"messages": [AIMessage("done")]}
    request = {"name": call[0], "args": call[1], "id": f"call_{os.urandom(6).hex()}"}
    return {"messages": [AIMessage("", tool_calls=[request])]}


async def tools_of(client: Client) -> list[StructuredTool]:
    """The server's tools as LangChain knows tools."""

    def made(name: str, description: str, schema: dict[str, Any]) -> StructuredTool:
        async def call(**arguments: Any) -> str:
            given = {k: v for k, v in arguments.items() if v is not None}
            answer = await client.call_tool(name, given)
            if answer.is_error:
                raise RuntimeError(f"{name}: {answer.structured_content}")
            return json.dumps(answer.structured_content)

        return StructuredTool(name=name, description=description, args_schema=schema, coroutine=call)

    return [made(t.name, t.description or "", t.input_schema) for t in (await client.list_tools()).tools]


async def work(calls: int | None) -> bool:
    """Work until it is done, or for so many calls: each is two steps of the graph."""
    command, args = agent_job.server()
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ), cwd=agent_job.FOLDER)
    async with Client(server) as client:
        graph = StateGraph(MessagesState)
        graph.add_node("model", follow)
        graph.add_node("tools", ToolNode(await tools_of(client), handle_tool_errors=False))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        steps = 1000 if calls is None else 2 * calls
        try:
            await graph.compile().ainvoke({"messages": [HumanMessage("Publish it.")]}, {"recursion_limit": steps})
        except GraphRecursionError:
            return False
        return True


if __name__ == "__main__":
    agent_job.story(__file__, work)
