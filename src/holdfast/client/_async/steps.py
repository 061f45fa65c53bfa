"""Steps from Python: `run.step` and `run.each`. The one source; steps_sync.py is made from it."""

from __future__ import annotations

from functools import partial

from ...model import ids
from ...model.errors import HoldfastError, invalid
from ...model.work.effects import Fenced, StepInDoubt, WorkerStopping
from .._io.async_heartbeat import attended, invoke, over
from ..steps_under_way import CalledOff, UnderWay, Unit, claim
from .exec_step import doubt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Json = dict[str, Any]
    _Next = tuple["_Call", UnderWay, Json]  # the step after this one, ours, and how it was begun

_ERROR_SHOWN = 2000  # characters of an exception that are kept: its message, not a dump
_REFUSED = frozenset({"conflict", "invalid"})  # a next step that cannot be: other arguments or effect, not JSON


class StepContext:
    """What a step's function gets if it has a parameter `step`: a target that is given the epoch can fence too."""

    __slots__ = ("epoch", "idem_key", "key", "run")

    def __init__(self, run: str, key: str, epoch: int, idem_key: str) -> None:
        self.run, self.key, self.epoch, self.idem_key = run, key, epoch, idem_key


class _Call:
    """What a caller of `step` or `each` gave for one step, and how it is written down."""

    __slots__ = ("about", "args", "compensate", "fn", "kwargs", "more", "verify")

    def __init__(
        self,
        key: str,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Json,
        effect: str,
        verify: Callable[..., Any] | None,
        compensate: Callable[..., Any] | None,
        **more: Any,
    ) -> None:
        self.about, self.more = _about(key, fn, args, kwargs, effect), more
        self.fn, self.args, self.kwargs, self.verify, self.compensate = fn, args, kwargs, verify, compensate

    @property
    def key(self) -> str:
        return str(self.about["key"])

    @property
    def ended(self) -> Json:
        """What is said of it with its outcome: one without effect was never begun on paper."""
        return dict(self.about) if self.about["effect"] == "none" else {"key": self.key}


class AsyncSteps:
    """The part of a run that does steps. Needs what the run has: `id`, `_check`, `_call`, `_step`."""

    id: str
    _unasked: dict[str, tuple[_Call, Json]]  # in doubt since they were cancelled, with hooks that can look

    def _check(self) -> None:
        raise NotImplementedError

    async def _call(self, name: str, /, **args: Any) -> Any:
        raise NotImplementedError

    async def _step(self, name: str, args: Json) -> Any:
        """`_call`, for arguments that went through `work.values`: plain, and so quickly written."""
        raise NotImplementedError

    async def step(
        self,
        key: str,
        fn: Callable[..., Any],
        *args: Any,
        effect: str = "unsafe",
        verify: Callable[..., Any] | None = None,
        compensate: Callable[..., Any] | None = None,
        idem_key: str | None = None,
        why: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call `fn(*args, **kwargs)` once for this key, whatever happens in between; its result, now or from before.

        `verify(*args)` says whether it happened (its value becomes the result; False or None: it did not).
        `compensate(*args)` undoes it, whether or not it happened; then it may run again. Both must bear repetition.
        While this process does the step, also for a caller that was cancelled, a second call waits for that.
        """
        self._check()
        call = _Call(key, fn, args, kwargs, effect, verify, compensate, idem_key=idem_key, why=why)

        async def whole(unit: Unit) -> Any:
            unit.at = await self._entered(call)
            try:
                done = await self._through(call, None, unit)
                if done["decision"] == "execute":
                    await self._step("step_end", {**call.ended, "result": done["result"]})
                return done["result"]
            finally:
                unit.at.leave()

        return await attended(whole)

    async def each(
        self,
        name: str,
        fn: Callable[..., Any],
        items: Sequence[Any],
        *,
        keys: Sequence[str] | None = None,
        effect: str = "unsafe",
        verify: Callable[..., Any] | None = None,
        compensate: Callable[..., Any] | None = None,
        why: str | None = None,
    ) -> list[Any]:
        """`fn(item)` for one item after the other, as the steps `name:item`, or `name:key` where `keys` are given;
        their results. No two may have the same name.

        What `step` promises holds for each. But the outcome of one and the intent of the next are one write, since
        nothing happens in between: about half the flushes, and half the calls.
        """
        names = _names(name, items, keys)

        def call(n: int) -> _Call:
            return _Call(names[n], fn, (items[n],), {}, effect, verify, compensate, why=why)

        async def all_of_them(unit: Unit) -> list[Any]:
            results: list[Any] = []
            coming: _Next | None = None
            try:
                for n in range(len(names)):
                    if coming is None:
                        self._check()
                        here = call(n)
                        unit.at = await self._entered(here)
                        begun = None
                    else:
                        here, unit.at, begun = coming
                        coming = None
                    try:
                        done = await self._through(here, begun, unit)
                        if done["decision"] == "execute":
                            last = n + 1 == len(names) or effect == "none" or unit.left or self._leaves()
                            coming = await self._ended(here, done["result"], None if last else partial(call, n + 1))
                    finally:
                        unit.at.leave()
                    results.append(done["result"])
                    if unit.left:
                        raise CalledOff
                    unit.firm = False
                return results
            finally:
                if coming is not None:
                    await self._not_run(coming)

        return await attended(all_of_them)

    async def unsettled(self) -> list[str]:
        """The steps whose end is not known, after what still runs here has ended and every hook at hand was asked."""
        await self._quieted()
        for call, begun in list(self._unasked.values()):
            try:
                await self._settled(call, {"key": call.key}, begun, Unit())
            except Fenced:
                raise
            except HoldfastError:
                pass  # looking failed: it stays in doubt
        found: list[str] = []
        for state in ("in_doubt", "open"):
            found += [step["key"] for step in await self._call_read("step_ls", state=state)]
        return found

    async def _call_read(self, name: str, /, **args: Any) -> Any:
        raise NotImplementedError

    async def _quieted(self) -> None:
        raise NotImplementedError

    def _leaves(self) -> bool:
        """Whether no further step is to be begun; what is under way may still say how it ended."""
        try:
            self._check()
        except (HoldfastError, WorkerStopping):
            return True
        return False

    async def _entered(self, call: _Call) -> UnderWay:
        """Claim the step; a call that does it already in this process is waited for."""
        while True:
            step, mine = claim(self.id, call.about)
            if mine:
                return step
            step.waiting += 1
            try:
                await over(step)
            finally:
                step.waiting -= 1
            if step.raised is not None and step.same(call.about):
                raise step.raised
            self._check()

    async def _through(self, call: _Call, begun: Json | None, unit: Unit) -> Json:
        """From the intent to the body's result: `execute`, and it is to be written, or `reuse`."""
        begun = await self._begun(call, begun, unit)
        return begun if begun["decision"] == "reuse" else await self._done(call, begun, unit)

    async def _begun(self, call: _Call, begun: Json | None, unit: Unit) -> Json:
        """The intent, on disk: `execute` or `reuse`. What is in doubt is settled by the caller's hooks, or raises."""
        if begun is None:
            begun = await self._step("step_begin", {**call.about, **call.more})
        if begun["decision"] == "in_doubt":
            if await self._settled(call, begun["step"], begun, unit) is None:
                raise doubt(begun["step"])
            unit.go_on()
            begun = await self._step("step_begin", {**call.about, **call.more})
        if begun["decision"] == "in_doubt":
            raise doubt(begun["step"])
        return begun

    async def _done(self, call: _Call, begun: Json, unit: Unit) -> Json:
        """The body. What it returned, as a later worker will be given it, so that both see the same."""
        from ...wire import json_values

        context = StepContext(self.id, call.key, begun["epoch"], begun["idem_key"])
        try:
            value = await invoke(call.fn, call.args, call.kwargs, context, unit)
            unit.firm = True  # it has ended: from here on its outcome is written, also without a caller
            text = json_values.encode(value, f"the result of step {call.key!r}")
        except BaseException as e:
            unit.firm = True
            settled = await self._failed(call, begun, e, unit)
            if settled is None:
                if isinstance(e, Exception) and unit.at is not None:
                    unit.at.raised = e
                raise
            return settled
        return {"decision": "execute", "result": json_values.decode(text)}

    async def _ended(self, call: _Call, result: Any, following: Callable[[], _Call] | None) -> _Next | None:
        """The outcome of one step, on disk, and with it the intent of the next, if that can be begun."""
        outcome: Json = {**call.ended, "result": result, "request": ids.new("req_")}
        if following is not None:
            step: UnderWay | None = None
            try:
                coming = following()
                step, mine = claim(self.id, coming.about)
                if mine:
                    begun = await self._step("step_next", {"ended": dict(outcome), **coming.about, **coming.more})
                    return coming, step, begun
            except BaseException as e:
                if step is not None:
                    step.leave()
                if not isinstance(e, HoldfastError) or e.code not in _REFUSED:
                    raise
                # Nothing was written; what is wrong with the next step is said when it is begun by itself.
        await self._step("step_end", outcome)
        return None

    async def _not_run(self, coming: _Next) -> None:
        """It was begun with the outcome before it, and its body never ran."""
        call, step, begun = coming
        try:
            if begun["decision"] == "execute":
                await self._call("step_fail", key=call.key, error="called off before its body ran", known=True)
        except HoldfastError:
            pass  # the intent stays open, and is in doubt for the next worker
        finally:
            step.leave()

    async def _settled(self, call: _Call, report: Json, begun: Json, unit: Unit) -> bool | None:
        """Whether it happened, as a hook of the caller's found, and as it is written now. None: there is no hook."""
        hook = call.verify or call.compensate
        if hook is None:
            return None
        context = StepContext(self.id, call.key, begun["epoch"], begun["idem_key"])
        try:
            said = await invoke(hook, call.args, call.kwargs, context, unit)
        except Fenced:
            raise
        except Exception as e:
            raise StepInDoubt(
                f"step {call.key!r} is in doubt, and looking into it failed: {e!r:.200}", "", report
            ) from e
        happened = call.verify is not None and said is not None and said is not False
        name = "verify" if call.verify else "compensate"
        evidence = f"{name} {getattr(hook, '__qualname__', hook)!s:.200}: {said!r:.200}"
        await self._call(
            "step_settle",
            key=call.key,
            outcome="done" if happened else "not_done",
            result=said if happened else None,
            evidence=evidence,
        )
        self._unasked.pop(call.key, None)
        return happened

    async def _failed(self, call: _Call, begun: Json, error: BaseException, unit: Unit) -> Json | None:
        """The function raised: undo it if that can be, else look. None: the error goes on; else the step is done."""
        if call.about["effect"] == "none":
            return None  # nothing was written, nothing is to be taken back
        known = False
        if call.compensate is not None and isinstance(error, Exception):
            context = StepContext(self.id, call.key, begun["epoch"], begun["idem_key"])
            try:
                await invoke(call.compensate, call.args, call.kwargs, context, unit)
                known = True
            except Exception:  # noqa: BLE001 - what it was called for is the error that matters; the step stays in doubt
                pass
        text = f"{type(error).__name__}: {error}"[:_ERROR_SHOWN]
        try:
            state = (await self._call("step_fail", key=call.key, error=text, known=known))["state"]
        except HoldfastError:
            return None  # fenced, or the store is gone: the intent stays open, and is in doubt for the next worker
        if state != "in_doubt":
            return None
        if not isinstance(error, Exception):
            self._unasked[call.key] = call, begun  # a caller that is cancelled does not look now
            return None
        try:
            found = None if call.verify is None else await self._settled(call, {"key": call.key}, begun, unit)
        except Fenced:
            raise
        except HoldfastError as e:
            error.add_note(f"and it is not known whether it happened: {e.line()}")
            return None
        return await self._step("step_begin", {**call.about, **call.more}) if found else None


def _names(name: str, items: Sequence[Any], keys: Sequence[str] | None) -> list[str]:
    """The keys of a batch's steps. Two of one name would be one step, and the second item would not be done."""
    if keys is not None and len(keys) != len(items):
        raise invalid(f"{len(items)} items have {len(keys)} keys", "give a key for each item")
    names = [f"{name}:{word}" for word in (items if keys is None else keys)]
    seen: set[str] = set()
    for key in names:
        if key in seen:
            raise invalid(f"two items are the step {key!r}", "leave one out, or give each a key of its own: keys=[…]")
        seen.add(key)
    return names


def _about(key: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Json, effect: str) -> Json:
    """What a step is, as it is written down."""
    from ...wire import json_values

    given = json_values.decode(
        json_values.encode({"args": args, "kwargs": kwargs} if kwargs else list(args), f"the arguments of step {key!r}")
    )
    action = getattr(fn, "__qualname__", None) or type(fn).__name__
    return {"key": key, "effect": effect, "args": given, "action": action}
