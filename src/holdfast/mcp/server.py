"""The MCP server itself: the SDK's low-level one, because it lets the schemas be as small as they are."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..client._async.host import AsyncHost
from ..model.errors import HoldfastError, from_disk_error
from ..version import VERSION
from . import guide, resources
from .agent import Agent
from .subscriptions import LIST, WATCHED_MAX, Subscriptions, mark
from .tools import ask, schemas, sessions, time_limits, token_budget, work
from .tools.call import ToolCall

Json = dict[str, Any]
Who = Callable[[Any], Awaitable[Agent]]  # the agent behind a request's context
log = logging.getLogger("holdfast.mcp")

_HANDLERS: dict[str, Callable[[ToolCall, Json], Awaitable[Any]]] = {
    "status": sessions.status,
    "run": sessions.run,
    "exec": sessions.exec_,
    "read": sessions.read,
    "wait": sessions.wait,
    "send": sessions.send,
    "kill": sessions.kill,
    "ports": sessions.ports,
    "ask": ask.ask,
    "resume": work.resume,
    "task": work.task,
    "step": work.step,
    "checkpoint": work.checkpoint,
    "note": work.note,
    "artifact": work.artifact,
    "claim": work.claim,
}
_CHANGES_LIST = frozenset({"run", "kill"})  # tools after which other sessions are there
_CHANGES_TASKS = frozenset({"task"})


def client_name(ctx: Any) -> str:
    """What the client calls itself, or nothing."""
    params = ctx.session.client_params
    return str(params.client_info.name) if params is not None else ""


class McpServer:
    """The handlers of one server. `who` says whom a request acts for; `wait_max` is the configured limit, if any."""

    def __init__(self, who: Who, wait_max: float | None) -> None:
        self._who, self._wait_max = who, wait_max
        self._tools = types.ListToolsResult.model_validate({"tools": schemas.listed(paths=AsyncHost.local_files)})
        self._buses: dict[InMemorySubscriptionBus, Subscriptions] = {}  # one for each open listen stream

    # -- tools

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        return self._tools

    async def call_tool(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        name, args = params.name, params.arguments or {}
        try:
            if name not in _HANDLERS:
                raise HoldfastError("not_found", f"there is no tool {name[:60]!r}", f"there are {', '.join(_HANDLERS)}")
            wrong = schemas.fault(name, args)
            if wrong is not None:
                raise HoldfastError("invalid", *wrong)
            agent = await self._who(ctx)
            limit = time_limits.limit(self._wait_max, client_name(ctx))
            call = ToolCall(agent, ctx, limit, params.input_responses, params.request_state)
            answer = await _HANDLERS[name](call, args)
        except HoldfastError as e:
            return _failed(e)
        except (MCPError, OSError) as e:
            return _failed(
                from_disk_error(e) or HoldfastError("failed", str(e)[:500], "look at status, then try again")
            )
        except Exception as e:
            log.exception("tool %s failed", name)
            return _failed(HoldfastError("internal", f"internal error: {e!r:.300}", "please report it"))
        if isinstance(answer, types.InputRequiredResult):
            return answer
        await self._tell(ctx, name)
        return _result(answer)

    async def _tell(self, ctx: Any, name: str) -> None:
        """Word to this connection, and to those that listen, of what a tool has just changed."""
        if name not in _CHANGES_LIST and name not in _CHANGES_TASKS:
            return
        of = LIST if name in _CHANGES_LIST else resources.TASKS
        event = ResourcesListChanged() if of == LIST else ResourceUpdated(resources.TASKS)
        for bus, heard in list(self._buses.items()):
            if not heard.watches(of):  # else its watcher tells, as it does of everybody's acts
                await bus.publish(event)
        watchers = _watchers(ctx)
        if watchers.watches(of):
            return
        if of == LIST:
            await ctx.session.send_resource_list_changed()
        elif watchers.has(of):
            await ctx.session.send_resource_updated(of)

    # -- the guide

    async def list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="guide", description="How to work here")])

    async def get_prompt(self, ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != "guide":
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name[:60]!r}")
        words = types.PromptMessage(role="user", content=types.TextContent(text=guide.text()))
        return types.GetPromptResult(messages=[words])

    # -- resources

    async def list_resources(self, ctx: Any, params: Any) -> types.ListResourcesResult:
        agent = await self._agent(ctx)
        await self._watch_list(ctx, agent)
        return types.ListResourcesResult(resources=await resources.listing(agent))

    async def _watch_list(self, ctx: Any, agent: Agent) -> None:
        """Whoever has asked what there is hears when that changes. The mark is taken before the list is."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS and not _watchers(ctx).watches(LIST):
            known = await mark(agent, "list")
            _watchers(ctx).add_list(agent, known, ctx.session.send_resource_list_changed)

    async def list_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.templates())

    async def read_resource(self, ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[await resources.read(await self._agent(ctx), str(params.uri))])

    async def subscribe(self, ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        agent, session = await self._agent(ctx), ctx.session
        await self._watch_list(ctx, agent)
        try:
            await _watchers(ctx).add(agent, str(params.uri), session.send_resource_updated)
        except HoldfastError as e:
            raise MCPError(types.INVALID_PARAMS, e.line(), e.as_dict()) from None
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        _watchers(ctx).remove(str(params.uri))
        return types.EmptyResult()

    async def listen(self, ctx: Any, params: types.SubscriptionsListenRequestParams) -> types.SubscriptionsListenResult:
        """One stream of the stateless era: its own bus, so that nobody hears of what another may see."""
        agent = await self._agent(ctx)
        bus, watchers = InMemorySubscriptionBus(), Subscriptions()

        async def tell(uri: str) -> None:
            await bus.publish(ResourceUpdated(uri))

        async def tell_list() -> None:
            await bus.publish(ResourcesListChanged())

        wanted = (params.notifications.resource_subscriptions or [])[: WATCHED_MAX - 1]
        try:
            if params.notifications.resources_list_changed:
                watchers.add_list(agent, await mark(agent, "list"), tell_list)
            await asyncio.gather(*(watchers.add(agent, str(uri), tell) for uri in wanted))
            self._buses[bus] = watchers
            return await ListenHandler(bus)(ctx, params)
        finally:
            self._buses.pop(bus, None)
            await watchers.close()

    async def _agent(self, ctx: Any) -> Agent:
        try:
            return await self._who(ctx)
        except HoldfastError as e:
            raise MCPError(types.INVALID_REQUEST, e.line(), e.as_dict()) from None


def _watchers(ctx: Any) -> Subscriptions:
    """Those of a handshake-era connection; they end with it."""
    connection = ctx.session._connection  # not public in mcp 2: held below 3, and noticed by test_private_names.py
    if "holdfast.watchers" not in connection.state:
        connection.state["holdfast.watchers"] = made = Subscriptions()
        connection.exit_stack.push_async_callback(made.close)
    found: Subscriptions = connection.state["holdfast.watchers"]
    return found


def _result(answer: Json, *, error: bool = False) -> types.CallToolResult:
    """Once as data and once as text, because some clients show their model only one of them."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    clean = token_budget.sendable(text)
    if clean != text:
        answer = json.loads(clean)
    return types.CallToolResult(content=[types.TextContent(text=clean)], structured_content=answer, is_error=error)


def _failed(e: HoldfastError) -> types.CallToolResult:
    about = e.as_dict()
    report = getattr(e, "report", None)
    return _result({"error": about | ({"report": report} if report else {})}, error=True)


def build(who: Who, wait_max: float | None) -> tuple[Server[Any], InitializationOptions]:
    surface = McpServer(who, wait_max)
    server: Server[Any] = Server(
        "holdfast",
        version=VERSION,
        instructions=guide.INSTRUCTIONS,
        on_list_tools=surface.list_tools,
        on_call_tool=surface.call_tool,
        on_list_prompts=surface.list_prompts,
        on_get_prompt=surface.get_prompt,
        on_list_resources=surface.list_resources,
        on_list_resource_templates=surface.list_templates,
        on_read_resource=surface.read_resource,
        on_subscribe_resource=surface.subscribe,
        on_unsubscribe_resource=surface.unsubscribe,
        on_subscriptions_listen=surface.listen,
    )
    return server, server.create_initialization_options(NotificationOptions(resources_changed=True))
