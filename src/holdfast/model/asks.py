"""An inbox item: what waits for a person, and every way it can end. Everything that changes its state is here.

    open --answer--> answered        input, secret, question: a text was given
    open --approve-> answered        approval, control_request, held: yes
    open --deny----> denied          approval, control_request, held, question: no
    open --expire--> expired         nobody said anything in time
    open --vanish--> gone            the prompt was left, the asker went away, the session ended

All but `open` are final: a second answer is a conflict that names who gave the first.
"""

from __future__ import annotations

from .errors import HoldfastError, invalid
from .limits import ASK_ANSWER_MAX, ASK_OPTIONS_MAX, ASK_TEXT_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

KINDS = ("input", "secret", "question", "approval", "control_request", "held")
TYPED = ("input", "secret")  # answered into the live stdin of their session
YES_OR_NO = ("approval", "control_request", "held")
ASKED = ("question", "approval")  # what one asks for in so many words; the rest comes about by itself

# (event, kinds it may happen to) -> the state it leads to
_ENDS = {
    "answer": (("input", "secret", "question"), "answered"),
    "approve": (YES_OR_NO, "answered"),
    "deny": (("question", *YES_OR_NO), "denied"),
    "expire": (("question", *YES_OR_NO), "expired"),
    "vanish": (KINDS, "gone"),
}
_INSTEAD = {
    "input": "hold answer {id} TEXT",
    "secret": "hold answer {id}, which asks without echo, or --stdin",
    "question": "hold answer {id} TEXT, or --deny",
    "approval": "hold answer {id} --approve, or --deny",
    "control_request": "hold answer {id} --approve, or --deny",
    "held": "hold answer {id} --approve hands the controls back, --deny keeps them",
}


def after(item: Json, event: str) -> str:
    """The state that `event` leads to, or the error that says why it cannot happen."""
    kinds, state = _ENDS[event]
    if item["state"] != "open":
        raise over(item)
    if item["kind"] not in kinds:
        what = item["kind"].replace("_", " ")
        raise HoldfastError("usage", f"{item['id']} is a {what}: it cannot be answered like that", instead(item))
    return state


def instead(item: Json) -> str:
    return _INSTEAD[item["kind"]].format(id=item["id"])


def over(item: Json) -> HoldfastError:
    """What a second answer is told: who was first, or why nobody can answer any more."""
    by = item.get("answered_by") or {}
    who = f"{by['name']} ({by['kind']})" if by else "somebody"
    happened = {
        "answered": f"{who} has answered {item['id']} already",
        "denied": f"{who} has said no to {item['id']} already",
        "expired": f"the time to answer {item['id']} is over",
        "gone": f"what {item['id']} asked for is no longer wanted",
    }[item["state"]]
    return HoldfastError("conflict", happened, "hold inbox shows what is open")


def check_question(text: object, options: object) -> tuple[str, list[str]]:
    """A question and the answers it offers, bounded: it is shown whole in a list."""
    if not isinstance(text, str) or not text.strip():
        raise invalid("a question needs words", 'hold ask "Which branch?"')
    if len(text) > ASK_TEXT_MAX:
        raise invalid(f"a question of {len(text)} characters", f"at most {ASK_TEXT_MAX}; name a file for the rest")
    offered = options or []
    if not isinstance(offered, list) or not all(isinstance(o, str) and o.strip() for o in offered):
        raise invalid("an option needs words", "--option main --option develop")
    if len(offered) > ASK_OPTIONS_MAX or any(len(o) > ASK_TEXT_MAX for o in offered):
        raise invalid(f"{len(offered)} options", f"at most {ASK_OPTIONS_MAX}, each of {ASK_TEXT_MAX} characters")
    return text, list(dict.fromkeys(offered))


def check_answer(item: Json, text: str) -> str:
    """The answer to a question: one of its options where it has some (also by number)."""
    if len(text) > ASK_ANSWER_MAX:
        raise invalid(f"an answer of {len(text)} characters", f"at most {ASK_ANSWER_MAX}")
    options = item["options"]
    if not options or text in options:
        return text
    if text.isdigit() and 1 <= int(text) <= len(options):
        return str(options[int(text) - 1])
    raise invalid(f"{text[:60]!r} is not one of the options", " · ".join(options)[:200])


def same_prompt(item: Json, sample: Json) -> bool:
    """Whether a program still waits in the very read that the item tells of: nothing typed, nothing printed since."""
    return bool(
        item["generation"] == sample["generation"]
        and item["input_at"] == sample["input_at"]
        and item["offset"] == sample["output"]["end"]
    )
