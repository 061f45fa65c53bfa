"""How a command is run in an interactive fish (3.x) that is at its prompt.

As in bash, in fish's own words. fish never remembers a line that starts with a space, and has no way to add one.
`__hf_h` runs before the next prompt and finds its work done, unless Ctrl-C threw the rest of the line away.
"""

from __future__ import annotations

from .dialect import CLEAR, Job, Wrapped, fill
from .quoting import fish_literal, fish_typeable

_SCRIPT = rb"""builtin set -g __hf_r $status
function __hf_b
@env@
builtin printf '\e]7733;b;@token@\a' >/dev/tty; or builtin printf '\e]7733;b;@token@\a'
return $__hf_r
end
function __hf_e
if builtin set -q __hf_g
begin
builtin printf 'holdfast-exec 1 @token@ %s %s\n' $argv[1] $fish_pid
builtin pwd
builtin printf 'end @token@\n'
end >>@record@
builtin set -e -g __hf_g
end
builtin printf '\e]7733;e;@token@\a' >/dev/tty; or builtin printf '\e]7733;e;@token@\a'
builtin set -e -g __hf_r
builtin set -e -g __hf_s
builtin functions -e __hf_b __hf_e __hf_h
return $argv[1]
end
function __hf_h --on-event fish_prompt
__hf_e $status 2>/dev/null
end
@go@
"""

_RUN = rb"""builtin set -g __hf_g '__hf_b 2>/dev/null;builtin eval $__hf_s;__hf_e $status 2>/dev/null'
builtin set -g __hf_s @source@"""

_PROBE = rb"""builtin set -g __hf_g '__hf_b 2>/dev/null;__hf_e $__hf_r 2>/dev/null'"""


def wrapped(job: Job) -> Wrapped:
    script = fill(
        _SCRIPT,
        token=job.token,
        record=fish_literal(job.record),
        env=b"\n".join(b"builtin set -gx " + name + b" " + fish_literal(value) for name, value in job.env.items()),
        go=_PROBE if job.source is None else fill(_RUN, source=fish_literal(job.source)),
    )
    path = fish_typeable(job.script)
    return Wrapped(script, CLEAR + b" builtin source " + path + b";builtin eval $__hf_g\r")
