"""How a command is run in an interactive POSIX shell (dash) that is at its prompt.

As in bash, with what a plain shell has. There is no hook before the prompt, but PS1 is expanded each time: it gets
`__hf_h` in front, which after Ctrl-C or a syntax error writes the record and prints the second mark. That runs in a
subshell and cannot clean up, so it acts while the script is there, and the next command or probe removes it.
Special builtins come before functions here; `command` passes over functions for the others. Options are kept in
positional parameters: what is assigned while allexport is on stays exported, unset or not.

The tty is in canonical mode at this prompt, where C-u kills what somebody typed. On a tty left in raw mode it would be
a letter of the command, so it gets a line of its own on which it does nothing either way.

Not solved: with errexit on, a source whose last status is exempt (`a && b`) ends the shell, as `eval` does.
"""

from __future__ import annotations

import re

from .dialect import Job, Wrapped, fill
from .quoting import literal, word

# A canonical line ends at 4,095 bytes; what is typed besides the path takes less than the difference.
_PATH_BYTES_MAX = 4000
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")

_SCRIPT = rb"""{ \eval '\set +avx;__hf_r='"$?"' __hf_o='"$-";} 2>/dev/null
__hf_w() {
{ \command printf 'holdfast-exec 1 @token@ %s %s\n' "$1" "$$";\command pwd;\command printf 'end @token@\n';} >>@record@
}
__hf_m() {
\command printf '\033]7733;e;@token@\a' >/dev/tty || \command printf '\033]7733;e;@token@\a' >&2
}
__hf_h() {
\set -- "$?"
\set +eu
if [ -e @script@ ];then
[ -s @record@ ] || __hf_w "$1"
__hf_m
fi
}
__hf_b() {
@env@
case ${PS1-} in *@hook@*);; *) __hf_u=${PS1+s};PS1=@hook@${PS1-};; esac
\command printf '\033]7733;b;@token@\a' >/dev/tty || \command printf '\033]7733;b;@token@\a'
case $- in *e*) __hf_k=0;; *) __hf_k=$__hf_r;; esac
case $__hf_o in *a*) \set -a;; esac
case $__hf_o in *v*) \set -v;; esac
case $__hf_o in *x*) \set -x;; esac
\return "$__hf_k"
}
__hf_e() {
\set -- "$1" "$-"
\set +aeux
__hf_w "$1"
__hf_m
case ${PS1-} in *@hook@*) PS1=${PS1%%@hook@*}${PS1#*@hook@};; esac
[ -n "$__hf_u${PS1-}" ] || \unset PS1
\unset __hf_g __hf_k __hf_o __hf_r __hf_s __hf_u
\unset -f __hf_b __hf_e __hf_h __hf_m __hf_w
case $2 in *a*) \set -a;; esac
case $2 in *u*) \set -u;; esac
case $2 in *x*) \set -x;; esac
case $2 in *e*) \set -e;\return 0;; esac
\return "$1"
}
@go@
"""

_RUN = rb"""__hf_g='\eval "$__hf_s";{ __hf_e "$?";} 2>/dev/null'
__hf_s='{ __hf_b "";} 2>/dev/null
'@source@"""

_PROBE = rb"""__hf_g='{ __hf_b||:;__hf_e "$__hf_r";} 2>/dev/null'"""

# Empty once the variable is gone, so a nested shell that inherits PS1 does not stumble over it.
_HOOK = rb"'${__hf_g:+$({ __hf_h;} 2>/dev/null)}'"


def wrapped(job: Job) -> Wrapped:
    if len(job.script) > _PATH_BYTES_MAX or _CONTROL.search(job.script):
        raise ValueError("the script's path cannot be typed at this shell's prompt")
    script = fill(
        _SCRIPT,
        token=job.token,
        script=literal(job.script),
        record=literal(job.record),
        hook=_HOOK,
        env=b"\n".join(rb"\command export " + name + b"=" + literal(value) for name, value in job.env.items()),
        go=_PROBE if job.source is None else fill(_RUN, source=literal(job.source)),
    )
    return Wrapped(script, b": \x15\n . " + word(job.script) + rb""";\eval "$__hf_g" ''""" + b"\n")
