"""How a command is run in an interactive zsh (5.x) that is at its prompt.

As in bash: the first half of the typed line sources the script, the second evals at top level. What differs:

- zsh parses the whole eval at once, so a syntax error runs none of it. The first mark is therefore printed before it,
  and options that the script turned off are turned on again by the first line of the eval, or after it where that
  line did not run (`__hf_p` is then not empty).
- evallineno is among them: without it errors read `zsh: …` as if typed, not `(eval):1: …`.
- An `always` block runs `__hf_e` after the source, after a syntax error and after Ctrl-C alike, before zsh marks a
  line without an end (PROMPT_SP). After Ctrl-Z zsh goes on in a forked copy of itself; there the shell that is back
  at its prompt calls `__hf_e` from precmd_functions, and the copy keeps still.
- Functions run under `emulate -L zsh`: ksharrays, shwordsplit and the like are the user's business.

Not solved: with errexit on, a status that zsh forgives at the prompt (of `a && b`, of a loop ended by Ctrl-C) ends the
shell when it comes out of an eval, in zsh 5.9.
The typed line stays in the history unless histignorespace is on: zsh has no way to take it out again.
"""

from __future__ import annotations

from .dialect import CLEAR, Job, Wrapped, fill
from .quoting import literal, typeable

_SCRIPT = rb"""{ __hf_r=$? __hf_p=
[[ -o allexport ]] && __hf_p+=' allexport'
[[ -o cshjunkiequotes ]] && __hf_p+=' cshjunkiequotes'
[[ -o evallineno ]] && __hf_p+=' evallineno'
[[ -o verbose ]] && __hf_p+=' verbose'
[[ -o xtrace ]] && __hf_p+=' xtrace'
[[ -n "$__hf_p" ]] && __hf_p="__hf_p=;\\builtin setopt$__hf_p"
\builtin unsetopt allexport cshjunkiequotes evallineno verbose xtrace
\builtin typeset -g +x __hf_r __hf_p;} 2>/dev/null
__hf_b() {
\builtin emulate -L zsh
\builtin setopt noerrexit noerrreturn
@env@
@history@
case ${(t)precmd_functions} in
('') __hf_u=u;\builtin typeset -ga precmd_functions;precmd_functions=(__hf_h);;
(*readonly*) ;;
(array*) __hf_u=;precmd_functions=(__hf_h "${precmd_functions[@]}");;
esac
\builtin printf '\033]7733;b;@token@\a' >/dev/tty || \builtin printf '\033]7733;b;@token@\a'
\builtin return 0
}
__hf_q() {
if [[ -o errexit || -o errreturn ]];then \builtin return 0;fi
\builtin return "$__hf_r"
}
__hf_e() {
\builtin emulate -L zsh
\builtin setopt noerrexit noerrreturn noxtrace
if (( ZSH_SUBSHELL )); then \builtin return 0;fi
if (( TRY_BLOCK_INTERRUPT > 0 && $1 < 129 )); then \builtin set -- 130;fi
if (( $+__hf_ )); then
{ \builtin printf 'holdfast-exec 1 @token@ %s %s\n' "$1" "$$";\builtin pwd;\builtin printf 'end @token@\n';} >>@record@
\builtin unset __hf_
fi
\builtin printf '\033]7733;e;@token@\a' >/dev/tty || \builtin printf '\033]7733;e;@token@\a'
if (( $+__hf_u )); then
precmd_functions=("${(@)precmd_functions:#__hf_h}")
if [[ -n "$__hf_u" && ${#precmd_functions} == 0 ]]; then \builtin unset precmd_functions;fi
\builtin unset __hf_u
fi
\builtin unset __hf_r __hf_s
\builtin unset -f __hf_b __hf_e __hf_h __hf_q
\builtin return 0
}
__hf_h() { { __hf_e "$?";\builtin unset __hf_p;} 2>/dev/null;}
@go@
"""

_RUN = rb"""__hf_s='{ \builtin eval "$__hf_p";__hf_q;} 2>/dev/null'$'\n'
__hf_s+=@source@
__hf_=(builtin eval '{ { __hf_b;} 2>/dev/null;\builtin eval "$__hf_s";} always {
{ __hf_e "$?";\builtin eval "${__hf_p-}";\builtin unset __hf_p;} 2>/dev/null;}')"""

_PROBE = rb"""__hf_=(builtin eval '{ { __hf_b;__hf_q;} 2>/dev/null;} always {
{ __hf_e "$__hf_r";\builtin eval "${__hf_p-}";\builtin unset __hf_p;} 2>/dev/null;}')"""


def wrapped(job: Job) -> Wrapped:
    script = fill(
        _SCRIPT,
        token=job.token,
        record=literal(job.record),
        env=b"\n".join(_export(name, value) for name, value in job.env.items()),
        history=b"" if job.entry is None else rb"\builtin print -rs -- " + literal(job.entry),
        go=_PROBE if job.source is None else fill(_RUN, source=literal(job.source)),
    )
    return Wrapped(script, CLEAR + rb" \. " + typeable(job.script) + rb';"${__hf_[@]}"' + b"\r")


def _export(name: bytes, value: bytes) -> bytes:
    # Assigning to a readonly parameter would throw us out of the function.
    return b"[[ ${(t)%b} == *readonly* ]] || \\builtin export %b=%b" % (name, name, literal(value))
