"""The states of tasks and the table of their transitions; ids, phases and readiness. Pure."""

from __future__ import annotations

from ..errors import HoldfastError, invalid
from ..limits import NAME_MAX, PHASES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

STATUSES = ("pending", "active", "paused", "blocked", "done", "failed", "cancelled")
SHOWN = ("ready", *STATUSES)  # ready is never stored: it is pending and not held back
FINISHED = ("done", "cancelled")
PHASE = "main"  # of a project that names none

FAILURE_TYPES = (
    "test_failure",
    "build_error",
    "timeout",
    "no_progress",
    "network",
    "missing_tool",
    "permission",
    "crash",
    "verification_failed",
    "agent_error",
    "in_doubt",
    "unknown",
)
CONVERGENCES = ("first", "converging", "steady", "diverging", "stuck")
CHECK_STATES = ("passed", "failed", "timeout", "unknown")

# event -> status before -> status after. Everything else is refused.
TRANSITIONS: dict[str, dict[str, str]] = {
    # pending and failed ones only if ready; an active one is continued
    "start": {"pending": "active", "failed": "active", "paused": "active", "active": "active"},
    "fail": {"active": "failed", "paused": "failed"},
    "give_up": {"active": "blocked", "paused": "blocked"},  # failed for the last time, or stuck
    "block": {"pending": "blocked", "active": "blocked", "paused": "blocked", "failed": "blocked"},
    "unblock": {"blocked": "pending", "paused": "pending"},
    "pause": {"pending": "paused", "active": "paused", "failed": "paused"},
    "retry": {"failed": "pending", "blocked": "pending", "paused": "pending", "cancelled": "pending"},
    "done": {"pending": "done", "active": "done", "paused": "done", "blocked": "done", "failed": "done"},
    "cancel": dict.fromkeys(("pending", "active", "paused", "blocked", "failed"), "cancelled"),
    "edit": {s: s for s in ("pending", "active", "paused", "blocked", "failed")},
}
_INSTEAD = {
    "blocked": "see why: hold task show {id}; then hold task unblock {id}",
    "paused": "hold task unblock {id}, or hold task start {id}",
    "done": "it is finished; add another task",
    "cancelled": "reopen it: hold task retry {id}",
    "active": "hold task show {id}",
    "pending": "hold task start {id}",
    "failed": "hold task start {id}, or hold task show {id}",
}
_PAST = {
    "start": "started",
    "fail": "failed",
    "give_up": "blocked",
    "block": "blocked",
    "unblock": "unblocked",
    "pause": "paused",
    "retry": "tried again",
    "done": "done",
    "cancel": "cancelled",
    "edit": "edited",
}


def after(event: str, status: str, id: str) -> str:
    """The status that follows; raises if the event is not allowed."""
    found = TRANSITIONS[event].get(status)
    if found is None:
        raise HoldfastError(
            "conflict", f"task {id} is {status} and cannot be {_PAST[event]}", _INSTEAD[status].format(id=id)
        )
    return found


# -- names -------------------------------------------------------------------------------------------------------------


def check_id(id: object, what: str = "a task's id") -> str:
    """Check an id, which is part of keys (PROJECT/ID) and of file names."""
    if not isinstance(id, str) or not id:
        raise invalid(f"{what} must be text and not empty", "as 1.5 or login-form")
    plain = id.isascii() and all(c.isalnum() or c in "._-+" for c in id) and id[0].isalnum()
    if not plain or len(id) > NAME_MAX:
        raise invalid(
            f"{id[:NAME_MAX]!a} cannot be {what}",
            f"up to {NAME_MAX} ASCII letters, digits and . _ - +, beginning with a letter or a digit",
        )
    return id


def key(project: str, id: str) -> str:
    return f"{project}/{id}"


def split(wanted: object) -> tuple[str | None, str]:
    """Split a TASK argument: PROJECT/ID, or an ID of the current project."""
    project, found, id = str(wanted).rpartition("/")
    if not found:
        return None, check_id(wanted)
    return check_id(project, "a project's name"), check_id(id)


def check_phases(phases: object) -> list[str]:
    if phases is None or phases == []:
        return [PHASE]
    if not isinstance(phases, list) or len(phases) > PHASES_MAX:
        raise invalid(f"phases must be a list of at most {PHASES_MAX} names", "--phase NAME, once for each, in order")
    for phase in phases:
        check_id(phase, "a phase's name")
    if len(set(phases)) != len(phases):
        raise invalid("duplicate phase name", "give each phase once")
    return list(phases)


# -- phases and dependencies -------------------------------------------------------------------------------------------


def active_phase(phases: Sequence[str], used: Iterable[str], unfinished: Iterable[str]) -> str | None:
    """The first phase with open tasks; without any, the first one after the last that had tasks."""
    left, had = set(unfinished), set(used)
    for phase in phases:
        if phase in left:
            return phase
    last = max((n for n, phase in enumerate(phases) if phase in had), default=-1)
    return phases[last + 1] if last + 1 < len(phases) else None


def sort_phases(phases: Sequence[str], active: str | None) -> tuple[list[str], list[str]]:
    """(completed, remaining): those before the active one and those after it."""
    at = len(phases) if active is None else phases.index(active)
    return list(phases[:at]), list(phases[at + 1 :])


def find_cycle(task: str, needs: Iterable[str], edges: Mapping[str, Iterable[str]]) -> list[str] | None:
    """The cycle from a task back to itself, if it depended on these; `edges` are the existing dependencies."""
    came: dict[str, str] = {}
    ahead = [(need, task) for need in needs]
    while ahead:
        here, before = ahead.pop()
        if here in came:
            continue
        came[here] = before
        if here == task:
            path = [task]
            while not (len(path) > 1 and path[-1] == task):
                path.append(came[path[-1]])
            return path[::-1]
        ahead += [(need, here) for need in edges.get(here, ())]
    return None


def ready(status: str, *, waiting: int, phase: str, active: str | None, retry_at: int, now: int) -> bool:
    """Whether it can be started now: nothing holds it back, and after a failure another attempt is due."""
    free = status == "pending" or (status == "failed" and retry_at <= now)
    return free and waiting == 0 and phase == active


def shown(status: str, is_ready: bool) -> str:
    """The status for display. A failed one is shown as failed, even if it is ready for another attempt."""
    return "ready" if is_ready and status == "pending" else status


def current(projects: Sequence[tuple[str, str]], cwd: str | None) -> str:
    """The default project, of (name, root): the deepest root that contains `cwd`, or the only one."""
    here = (cwd or "").rstrip("/") + "/"
    holding = [(len(root), name) for name, root in projects if cwd and here.startswith(root.rstrip("/") + "/")]
    if holding:
        deepest = max(holding)[0]
        names = sorted(name for length, name in holding if length == deepest)
        if len(names) == 1:
            return names[0]
        raise invalid(f"{len(names)} projects have this folder: {', '.join(names[:5])}", "give one: --project NAME")
    if len(projects) == 1:
        return projects[0][0]
    if not projects:
        raise HoldfastError("not_found", "no project yet", "hold project init NAME")
    raise invalid(f"there are {len(projects)} projects, and none has this folder", "give one: --project NAME")
