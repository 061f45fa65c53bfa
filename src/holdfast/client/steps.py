"""Steps from Python: `run.step` and `run.each`. The one source; steps_sync.py is made from it."""

from __future__ import annotations

from ..model import ids
from ..model.errors import HoldfastError
from ..model.work import Fenced, StepInDoubt
from .stepped import doubt
from .work_aio import invoke

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Json = dict[str, Any]

_ERROR_SHOWN = 2000  # characters of an exception that are kept: its message, not a dump


class StepContext:
    """What a step's function gets if it has a parameter `step`: a target that is given the epoch can fence too."""

    __slots__ = ("epoch", "idem_key", "key", "run")

    def __init__(self, run: str, key: str, epoch: int, idem_key: str) -> None:
        self.run, self.key, self.epoch, self.idem_key = run, key, epoch, idem_key


class AsyncSteps:
    """The part of a run that does steps. Needs what the run has: `id`, `_check`, `_call`, `_step`."""

    id: str

    def _check(self) -> None:
        raise NotImplementedError

    async def _call(self, name: str, /, **args: Any) -> Any:
        raise NotImplementedError

    async def _step(self, name: str, args: Json) -> Any:
        """`_call`, for arguments that went through `work.values`: plain, and so quickly written."""
        raise NotImplementedError

    async def step(
        self, key: str, fn: Callable[..., Any], *args: Any, effect: str = "unsafe",
        verify: Callable[..., Any] | None = None, compensate: Callable[..., Any] | None = None,
        idem_key: str | None = None, why: str | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Call `fn(*args, **kwargs)` once for this key, whatever happens in between; its result, now or from before.

        `verify(*args)` says whether it happened (its value becomes the result; False or None: it did not).
        `compensate(*args)` undoes it, whether or not it happened; then it may run again. Both must bear repetition.
        """
        self._check()
        about = _about(key, fn, args, kwargs, effect)
        begun = await self._begun(about, None, verify, compensate, args, kwargs, idem_key=idem_key, why=why)
        if begun["decision"] == "reuse":
            return begun["result"]
        result = await self._done(about, begun, fn, compensate, args, kwargs)
        await self._step("step_end", {**(about if effect == "none" else {"key": key}), "result": result})
        return result

    async def each(
        self, name: str, fn: Callable[..., Any], items: Sequence[Any], *, effect: str = "unsafe",
        verify: Callable[..., Any] | None = None, compensate: Callable[..., Any] | None = None, why: str | None = None,
    ) -> list[Any]:  # fmt: skip
        """`fn(item)` for one item after the other, as the steps `name:item`; their results.

        What `step` promises holds for each. But the outcome of one and the intent of the next are one write, since
        nothing happens in between: about half the flushes, and half the calls.
        """
        results: list[Any] = []
        following: Json | None = None  # how the next one was begun, with the outcome of the one before
        for n, item in enumerate(items):
            if following is None:
                self._check()
            about = _about(f"{name}:{item}", fn, (item,), {}, effect)
            begun = await self._begun(about, following, verify, compensate, (item,), {}, why=why)
            following = None
            if begun["decision"] == "reuse":
                results.append(begun["result"])
                continue
            result = await self._done(about, begun, fn, compensate, (item,), {})
            results.append(result)
            ended: Json = about if effect == "none" else {"key": about["key"]}
            if n + 1 == len(items) or effect == "none" or self._leaves():
                await self._step("step_end", {**ended, "result": result})
            else:
                coming = _about(f"{name}:{items[n + 1]}", fn, (items[n + 1],), {}, effect)
                ended |= {"result": result, "request": ids.new("req_")}
                following = await self._step("step_next", {"ended": ended, **coming, "why": why})
        return results

    def _leaves(self) -> bool:
        """Whether no further step is to be begun; what is under way may still say how it ended."""
        try:
            self._check()
        except HoldfastError:
            return True
        return False

    async def _begun(
        self, about: Json, begun: Json | None, verify: Callable[..., Any] | None,
        compensate: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Json, **more: Any,
    ) -> Json:  # fmt: skip
        """The intent, on disk: `execute` or `reuse`. What is in doubt is settled by the caller's hooks, or raises."""
        if begun is None:
            begun = await self._step("step_begin", {**about, **more})
        if begun["decision"] == "in_doubt":
            if not await self._settled(begun, verify, compensate, args, kwargs):
                raise doubt(begun["step"])
            begun = await self._step("step_begin", {**about, **more})
        if begun["decision"] == "in_doubt":
            raise doubt(begun["step"])
        return begun

    async def _done(
        self, about: Json, begun: Json, fn: Callable[..., Any], compensate: Callable[..., Any] | None,
        args: tuple[Any, ...], kwargs: Json,
    ) -> Any:  # fmt: skip
        """The body. What it returned, as a later worker will be given it, so that both see the same."""
        from ..work import values

        context = StepContext(self.id, about["key"], begun["epoch"], begun["idem_key"])
        try:
            text = values.encode(await invoke(fn, args, kwargs, context), f"the result of step {about['key']!r}")
        except BaseException as e:
            await self._failed(context, about["effect"], e, compensate, args, kwargs)
            raise
        return values.decode(text)

    async def _settled(
        self, begun: Json, verify: Callable[..., Any] | None, compensate: Callable[..., Any] | None,
        args: tuple[Any, ...], kwargs: Json,
    ) -> bool:  # fmt: skip
        """Whether a hook of the caller's settled the doubt."""
        report = begun["step"]
        context = StepContext(self.id, report["key"], begun["epoch"], begun["idem_key"])
        hook = verify or compensate
        if hook is None:
            return False
        try:
            said = await invoke(hook, args, kwargs, context)
        except Fenced:
            raise
        except Exception as e:
            raise StepInDoubt(
                f"step {report['key']!r} is in doubt, and looking into it failed: {e!r:.200}", "", report
            ) from e
        happened = verify is not None and said is not None and said is not False
        evidence = f"{'verify' if verify else 'compensate'} {getattr(hook, '__qualname__', hook)!s:.200}: {said!r:.200}"
        await self._call(
            "step_settle", key=report["key"], outcome="done" if happened else "not_done",
            result=said if happened else None, evidence=evidence,
        )  # fmt: skip
        return True

    async def _failed(
        self, context: StepContext, effect: str, error: BaseException, compensate: Callable[..., Any] | None,
        args: tuple[Any, ...], kwargs: Json,
    ) -> None:  # fmt: skip
        """The function raised: undone if it can be, else nobody knows what it did. The error itself goes on."""
        if effect == "none":
            return  # nothing was written, nothing is to be taken back
        known = False
        if compensate is not None and isinstance(error, Exception):
            try:
                await invoke(compensate, args, kwargs, context)
                known = True
            except Exception:  # noqa: BLE001 - what it was called for is the error that matters; the step stays in doubt
                pass
        text = f"{type(error).__name__}: {error}"[:_ERROR_SHOWN]
        try:
            await self._call("step_fail", key=context.key, error=text, known=known)
        except HoldfastError:
            pass  # fenced, or the store is gone: the intent stays open, and is in doubt for the next worker


def _about(key: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Json, effect: str) -> Json:
    """What a step is, as it is written down."""
    from ..work import values

    given = values.decode(values.encode(
        {"args": args, "kwargs": kwargs} if kwargs else list(args), f"the arguments of step {key!r}"
    ))  # fmt: skip
    action = getattr(fn, "__qualname__", None) or type(fn).__name__
    return {"key": key, "effect": effect, "args": given, "action": action}
