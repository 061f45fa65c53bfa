"""An inbox item's state machine: what waits for a person, and every way it can end.

    open --answer--> answered        input, secret, question: a text was given
    open --approve-> answered        approval, control_request, held_controls: yes
    open --deny----> denied          approval, control_request, held_controls, question: no
    open --expire--> expired         no answer in time
    open --vanish--> gone            the prompt was left, the asker left, the session ended, the run continues

All but `open` are final: a second answer is a conflict that names the first author, or the `reason` of the end.
A menu has no answer: a typed text would choose what is highlighted. It ends when it leaves the screen.
"""

from __future__ import annotations

from ..errors import HoldfastError, invalid
from ..limits import ASK_ANSWER_MAX, ASK_OPTIONS_MAX, ASK_TEXT_MAX
from ..times import local_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Json = dict[str, Any]

KINDS = ("input", "secret", "menu", "question", "approval", "control_request", "held_controls", "parked_run")
TYPED = ("input", "secret")  # answered into the live stdin of their session
SEEN = (*TYPED, "menu")  # detected waits of a session: every operator that may view the session sees them
YES_OR_NO = ("approval", "control_request", "held_controls")
ASKED = ("question", "approval")  # explicit requests; the other kinds are created by the host

# (event, kinds it may happen to) -> the state it leads to
_ENDS = {
    "answer": (("input", "secret", "question"), "answered"),
    "approve": (YES_OR_NO, "answered"),
    "deny": (("question", *YES_OR_NO), "denied"),
    "expire": (("question", *YES_OR_NO), "expired"),
    "vanish": (KINDS, "gone"),
}
# Why an item ended without an answer here. `left`: a hook was ended; who did that is looked up later.
DECIDED, ASKER_ENDED, LEFT = "decided", "asker_ended", "left"
_DIALOG_KEYS = ("conversation", "agent", "call")
_NAME_MAX = 200  # characters of an agent's own name for a conversation, an agent inside it or a call
_NOT_NEEDED = "list open items: hold inbox"
_INSTEAD = {
    "input": "hold answer {id} TEXT",
    "secret": "hold answer {id}, which prompts without echo, or --stdin",
    "menu": "attach, or send keys: hold attach {session} · hold send {session} --key down --key enter",
    "question": "hold answer {id} TEXT, or --deny",
    "approval": "hold answer {id} --approve, or --deny",
    "control_request": "hold answer {id} --approve, or --deny",
    "held_controls": "hold answer {id} --approve hands the controls back, --deny keeps them",
    "parked_run": "{hint}",  # no answer: it ends when its cause does
}


def after(item: Json, event: str) -> str:
    """The state that `event` leads to; raises if it cannot happen."""
    kinds, state = _ENDS[event]
    if item["state"] != "open":
        raise over(item)
    if item["kind"] == "menu" and event != "vanish":
        words = f"{item['id']} is a menu: typed text would choose the highlighted entry"
        raise HoldfastError("usage", words, instead(item))
    if item["kind"] not in kinds:
        what = item["kind"].replace("_", " ")
        raise HoldfastError("usage", f"{item['id']} is a {what}: it cannot be answered like that", instead(item))
    return state


def instead(item: Json) -> str:
    return _INSTEAD[item["kind"]].format(
        id=item["id"],
        session=item.get("session_name") or "SESSION",
        hint=(item.get("detail") or {}).get("hint"),
    )


def over(item: Json) -> HoldfastError:
    """The error for a second answer: who answered first, or why it can no longer be answered."""
    by = item.get("answered_by") or {}
    who = f"{by['name']} ({by['kind']})" if by else "an operator"
    reason = item.get("reason")
    if reason == DECIDED:
        words = f"{item['id']} was already decided in the terminal at {local_time(item['answered_at'])}"
        return HoldfastError("conflict", words, _NOT_NEEDED)
    if reason == ASKER_ENDED:
        return HoldfastError(
            "conflict", f"{item['id']} no longer waits for an answer: the agent has ended", _NOT_NEEDED
        )
    happened = {
        "answered": f"{who} already answered {item['id']}",
        "denied": f"{who} already denied {item['id']}",
        "expired": f"the time to answer {item['id']} has expired",
        "gone": f"the request of {item['id']} was withdrawn",
    }[item["state"]]
    return HoldfastError("conflict", happened, _NOT_NEEDED)


def check_question(text: object, options: object) -> tuple[str, list[str]]:
    """Check the length of a question and its options: a list shows them whole."""
    if not isinstance(text, str) or not text.strip():
        raise invalid("the question is empty", 'hold ask "Which branch?"')
    if len(text) > ASK_TEXT_MAX:
        raise invalid(
            f"the question has {len(text)} characters", f"the limit is {ASK_TEXT_MAX}; refer to a file for the rest"
        )
    offered = options or []
    if not isinstance(offered, list) or not all(isinstance(o, str) and o.strip() for o in offered):
        raise invalid("an option is empty", "--option main --option develop")
    if len(offered) > ASK_OPTIONS_MAX or any(len(o) > ASK_TEXT_MAX for o in offered):
        raise invalid(f"{len(offered)} options", f"at most {ASK_OPTIONS_MAX}, each of {ASK_TEXT_MAX} characters")
    return text, list(dict.fromkeys(offered))


def check_dialog(given: object) -> Json | None:
    """Check a hook's names of a dialog, which are only compared."""
    if given is None:
        return None
    named = given if isinstance(given, dict) else {}
    found = {key: named.get(key) for key in _DIALOG_KEYS}
    names = [value for value in found.values() if value is not None]
    if not found["conversation"] or not all(isinstance(n, str) and len(n) <= _NAME_MAX for n in names):
        raise invalid("a dialog needs conversation, agent and call", "hold hook claude sends them")
    return found


def check_answer(item: Json, text: str) -> str:
    """The answer to a question: one of its options, if it has any (also by number)."""
    if len(text) > ASK_ANSWER_MAX:
        raise invalid(f"the answer has {len(text)} characters", f"the limit is {ASK_ANSWER_MAX}")
    options = item["options"]
    if not options or text in options:
        return text
    if text.isdigit() and 1 <= int(text) <= len(options):
        return str(options[int(text) - 1])
    raise invalid(f"{text[:60]!r} is not one of the options", " · ".join(options)[:200])


def same_prompt(item: Json, sample: Json) -> bool:
    """Whether a program still waits in exactly the read of the item: nothing typed or printed since."""
    return bool(
        item["generation"] == sample["generation"]
        and item["input_at"] == sample["input_at"]
        and item["offset"] == sample["output"]["end"]
    )


def same_menu(item: Json, sample: Json) -> bool:
    """Whether the item's menu is still shown: by the same job, and the same menu as far as the job reports it."""
    return bool(
        item["generation"] == sample["generation"]
        and item["front"] == sample["facts"]["tty"]["foreground_pgid"]
        and item["blocked_at"] == blocking(sample)
    )


def blocking(sample: Json) -> int | None:
    """The output offset of the foreground job's last report, if that is `blocked`; identifies the dialog."""
    says = sample.get("says") or {}
    mine = says.get("group") == sample["facts"]["tty"]["foreground_pgid"] and says.get("state") == "blocked"
    return int(says["end"]) if mine else None


def decided(items: Sequence[Json], over: Json) -> list[Json]:
    """The dialogs that a conversation has left behind, by what it did next (`over`): with a `call` the one that asked
    for exactly this call; if none did, those that were open before the call began, because an agent does one thing
    at a time. An `agent` inside the conversation leaves only its own behind."""
    mine = [i for i in items if (i.get("dialog") or {}).get("conversation") == over["conversation"]]
    if "agent" in over:
        mine = [i for i in mine if i["dialog"]["agent"] == over["agent"]]
    if over.get("call") is None:
        return mine
    same = [i for i in mine if i["dialog"]["call"] == over["call"]]
    return same or [i for i in mine if i["created_at"] < over["began"]]
