"""What is used of a dependency without its promise: held in pyproject.toml, and noticed here when it changes."""

from __future__ import annotations

import ast
import inspect
import tomllib
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.client.client import Client
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.console.http.slow_request import TimelyProtocol
from holdfast.console.server import WebServer

ROOT = Path(__file__).parents[2]
# Python's own, which are documented though they begin so.
DOCUMENTED = {"_exit", "_asdict", "_replace", "_fields", "_make"}
# (file, name): each is held to a version in pyproject.toml, with its reason.
USED = {("mcp/server.py", "_connection")}


def foreign_private_names() -> set[tuple[str, str]]:
    """Attributes with a leading underscore that no file of ours defines, of surfaces that stand on a framework."""
    found, ours = set(), set(DOCUMENTED)
    for path in (ROOT / "src/holdfast").rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                ours.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                ours.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                ours.add(node.attr)
            elif isinstance(node, ast.ImportFrom | ast.Import):
                ours |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                file = str(path.relative_to(ROOT / "src/holdfast"))
                if file.partition("/")[0] in ("mcp", "console", "integrations"):
                    found.add((file, node.attr))
    return {(file, name) for file, name in found if name not in ours or (file, name) in USED}


def test_no_private_name_of_a_framework_is_used_but_those_that_are_held() -> None:
    assert foreign_private_names() == USED


def test_the_frameworks_are_held_below_their_next_major_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "mcp>=2.3,<3" in project["optional-dependencies"]["mcp"]
    assert "uvicorn>=0.54,<1" in project["dependencies"]


async def test_a_request_of_the_mcp_server_knows_its_connection_with_its_state_and_its_end() -> None:
    """holdfast.mcp.server keeps what a connection watches in its state, and ends it with the connection."""
    seen: list[Any] = []

    async def tools(ctx: Any, params: Any) -> types.ListToolsResult:
        connection = ctx.session._connection
        assert isinstance(connection, Connection)
        if "kept" not in connection.state:
            connection.state["kept"] = []
            connection.exit_stack.callback(seen.append, "ended")
        connection.state["kept"].append(1)
        seen.append(len(connection.state["kept"]))
        return types.ListToolsResult(tools=[])

    async with Client(Server("it", on_list_tools=tools), mode="legacy", cache=None) as client:
        await client.list_tools()
        await client.list_tools()
    assert seen == [1, 2, "ended"]


def test_the_web_server_overrides_what_uvicorn_has_and_hides_nothing_of_it() -> None:
    assert inspect.iscoroutinefunction(uvicorn.Server.main_loop)
    assert inspect.isgeneratorfunction(inspect.unwrap(uvicorn.Server.capture_signals))
    assert {"capture_signals", "main_loop"} <= set(vars(uvicorn.Server))
    assert {"connection_made", "data_received", "connection_lost"} <= set(vars(H11Protocol))
    for ours, theirs in ((WebServer, uvicorn.Server), (TimelyProtocol, H11Protocol)):
        own = {name for name in vars(ours) if name.startswith("_") and not name.startswith("__")}
        assert not own & {name for base in theirs.__mro__ for name in vars(base)}
    source = inspect.getsource(uvicorn.Server.__init__) + inspect.getsource(H11Protocol.__init__)
    for name in ("self.server_state", "self.config", "self.conn", "self.loop", "self.transport"):
        assert name in source, name
    for name in ("_told", "_ready_fd", "_late"):  # instance attributes of ours
        assert f"self.{name}" not in inspect.getsource(uvicorn.Server) + inspect.getsource(H11Protocol)
