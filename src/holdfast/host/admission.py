"""Which right each operation needs, and on what. An operation that is not in this table is refused."""

from __future__ import annotations

from ..model.names import refused

ANYONE = "anyone"  # whoever is identified; the operation shows or does only what is the caller's own
EACH = "each"  # on many sessions: the operation asks for each one, and leaves out what may not be seen
HOST = "host"  # on the host itself: takes a grant on `*`
SESSION = "session"  # on the session named in the request
NEW = "new"  # on a session that is about to be
OWN = "own"  # on what is the caller's own: a grant on its own sessions is enough

TABLE: dict[str, tuple[str, str]] = {
    # looking
    "ping": ("", ANYONE),
    "whoami": ("", ANYONE),
    "ls": ("view", EACH),
    "ports": ("view", EACH),
    "facts": ("view", EACH),
    "started": ("view", EACH),
    "news": ("view", EACH),
    "status": ("view", EACH),
    "screen": ("view", SESSION),
    "offset": ("view", SESSION),
    "recording": ("view", SESSION),
    "snapshot": ("view", SESSION),
    "keys": ("view", SESSION),
    "wait": ("view", SESSION),
    "exec_result": ("view", SESSION),
    "doctor": ("view", HOST),
    "timeline": ("view", EACH),
    "journal_head": ("view", HOST),
    "journal_verify": ("view", HOST),
    # channels: what may be done on them is up to the rights they are opened with
    "open": ("view", SESSION),
    "attach": ("view", SESSION),
    # acting
    "run": ("start", NEW),
    "send": ("type", SESSION),
    "resize": ("resize", SESSION),
    "kill": ("signal", SESSION),
    "exec": ("exec", SESSION),
    "exec_outcome": ("exec", SESSION),
    "stop": ("stop", SESSION),
    "restart": ("start", SESSION),
    "rm": ("stop", SESSION),
    "rename": ("stop", SESSION),
    "prune": ("stop", EACH),
    "down": ("stop", HOST),
    # the controls; the keeper checks who holds them
    "take": ("request_control", SESSION),
    "release": ("view", SESSION),
    "hand": ("view", SESSION),
    # the inbox: one's own items, and those of sessions one may view; who may answer depends on the item
    "ask": ("", ANYONE),
    "asked": ("", ANYONE),
    "inbox": ("", ANYONE),
    "answer": ("", ANYONE),
    "withdraw": ("", ANYONE),
    "decided": ("", ANYONE),
    # durable work
    "work": ("work", OWN),
    "store": ("", ANYONE),
    "store_use": ("enrol", HOST),
    "store_migrate": ("enrol", HOST),
    "restore_confirm": ("enrol", HOST),
    # operators; delegation is judged by the grant it starts from
    "operator_ls": ("", ANYONE),
    "operator_find": ("", ANYONE),
    "operator_add": ("enrol", HOST),
    "operator_grant": ("", ANYONE),
    "operator_revoke": ("", ANYONE),
    # the HTTP port and its tokens: who may come in from elsewhere is a human's to say
    "web": ("enrol", HOST),
    "token_add": ("enrol", HOST),
    "token_end": ("enrol", HOST),
    "token_check": ("enrol", HOST),
    "login_use": ("enrol", HOST),
    "login_check": ("enrol", HOST),
    "login_end": ("enrol", HOST),
    "login_add": ("", ANYONE),  # a person's own browsers; judged by who asks, and for whom
}

# What is done only where it can be written down. Not among them: what looks, what ends something and so makes room
# (stop, kill, rm, prune, down), and durable work, which is nothing but writing.
RECORDED = frozenset(
    {
        "run",
        "send",
        "resize",
        "exec",
        "restart",
        "rename",
        "take",
        "release",
        "hand",
        "ask",
        "answer",
        "operator_add",
        "operator_grant",
        "operator_revoke",
        "web",
        "token_add",
        "login_add",
        "store_use",
        "restore_confirm",
    }
)

# What became of an operation whose entry cannot be written. Only a few write theirs first.
UNWRITTEN = {"rm": "it was not removed", "prune": "not all were removed", "rename": "it was not renamed"}


def need(op: str) -> tuple[str, str]:
    """(verb, on what) of an operation."""
    found = TABLE.get(op)
    if found is None:
        raise refused(f"nobody may {op[:40]!a} here", "upgrade: hold down, then again")
    return found
