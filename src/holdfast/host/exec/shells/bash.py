"""How a command is run in an interactive bash (4.4 or newer) that is at its prompt.

The typed line has two halves. The first sources the script, which prepares: functions, the source in a variable, and
options that would show our own work (allexport, verbose, xtrace) off. The second evals, at top level, so that the
source behaves and complains as if it had been typed:

- `__hf_b`, on a line of its own before the source, refreshes the environment, mends the history, puts `__hf_e` in front
  of PROMPT_COMMAND, prints the first mark and returns the `$?` of before.
- `builtin eval`, not `eval`: as a condition it keeps errexit alive inside, but a source whose last status is exempt
  (`! true`, `a && b`) does not end the shell by way of the eval around it.
- `__hf_e` writes the record, prints the second mark and removes all of this. It is called right after the source,
  and by PROMPT_COMMAND where bash threw the rest away: Ctrl-C, an unset variable, a failed expansion.

PROMPT_COMMAND is left alone where it is readonly (assigning would throw us out) or exported (a nested shell would
inherit the hook). After Ctrl-C the shell is then at its prompt without a record, which a probe settles.
The second half of the typed line is an array that the script sets, `builtin eval … ''`: shorter to type (each letter
costs the line editor more than all of the script), out of a function's reach, and `$_` is empty afterwards.
Every builtin is called as `\\builtin NAME`, which neither an alias nor a function of that name can take over. Nothing
here forks. Where errexit is on, our functions return 0: a status of before must not end the shell.
"""

from __future__ import annotations

from .dialect import CLEAR, Job, Wrapped, fill
from .quoting import literal, typeable

_SCRIPT = rb"""{ __hf_r=$? __hf_o=$-;\builtin set +avx;\builtin export -n __hf_r __hf_o;} 2>/dev/null
__hf_b() {
\builtin local - __hf_a __hf_k
__hf_k=$__hf_r
[[ ! -o errexit ]] || __hf_k=0
\builtin set +aekuvx
@env@
@history@
__hf_u=${PROMPT_COMMAND+s}
__hf_a=${PROMPT_COMMAND[*]@a}
[[ -n "${__hf_a//[^rx]}" ]] || PROMPT_COMMAND=@hook@$'\n'"${PROMPT_COMMAND-}"
\builtin printf '\033]7733;b;@token@\a' >/dev/tty || \builtin printf '\033]7733;b;@token@\a'
\builtin return "$__hf_k"
}
__hf_e() {
\builtin local - __hf_i __hf_k
__hf_k=$1
[[ ! -o errexit ]] || __hf_k=0
\builtin set +aekuvx
if [[ -n "${__hf_+s}" ]]; then
{ \builtin printf 'holdfast-exec 1 @token@ %s %s\n' "$1" "$$";\builtin pwd;\builtin printf 'end @token@\n';} >>@record@
\builtin unset -v __hf_
fi
\builtin printf '\033]7733;e;@token@\a' >/dev/tty || \builtin printf '\033]7733;e;@token@\a'
if [[ "${PROMPT_COMMAND[*]}" == *@hook@* ]]; then
case ${PROMPT_COMMAND[*]@a} in
*r*) ;;
*a*) for __hf_i in "${!PROMPT_COMMAND[@]}"; do
PROMPT_COMMAND[__hf_i]=${PROMPT_COMMAND[__hf_i]/@hook@$'\n'}
PROMPT_COMMAND[__hf_i]=${PROMPT_COMMAND[__hf_i]/@hook@}
done
[[ -n "$__hf_u${PROMPT_COMMAND-}" ]] || \builtin unset -v 'PROMPT_COMMAND[0]';;
*) PROMPT_COMMAND=${PROMPT_COMMAND/@hook@$'\n'}
PROMPT_COMMAND=${PROMPT_COMMAND/@hook@}
[[ -n "$__hf_u$PROMPT_COMMAND" ]] || \builtin unset -v PROMPT_COMMAND;;
esac
fi
\builtin unset -v __hf_o __hf_r __hf_s __hf_u
\builtin unset -f __hf_b __hf_e
\builtin return "$__hf_k"
}
__hf_s=
[[ "${__hf_o#*a}" == "$__hf_o" ]] || __hf_s+=a
[[ "${__hf_o#*v}" == "$__hf_o" ]] || __hf_s+=v
[[ "${__hf_o#*x}" == "$__hf_o" ]] || __hf_s+=x
[[ -z "$__hf_s" ]] || __hf_s="\builtin set -$__hf_s;"
__hf_s="{ $__hf_s"'__hf_b "";} 2>/dev/null'$'\n'
@go@
"""

_RUN = rb"""@source@
__hf_=(builtin eval 'if \builtin eval "$__hf_s";then { __hf_e "$?";} 2>/dev/null
else { __hf_e "$?";} 2>/dev/null;fi' '')"""

_PROBE = rb"""__hf_=(builtin eval '\builtin eval "$__hf_s";{ __hf_e "$__hf_r";} 2>/dev/null' '')"""

_HOOK = rb"""'{ __hf_e "$?";} 2>/dev/null'"""

# The leading space keeps the typed line out of the history only where HISTCONTROL says so. Elsewhere a look at the last
# entry tells whether it is there (HISTIGNORE), and the record's file brings that entry here without a fork.
_HISTORY = rb"""if [[ -o history ]]; then
if [[ ":${HISTCONTROL-}:" != *:ignorespace:* && ":${HISTCONTROL-}:" != *:ignoreboth:* ]]; then
\builtin history 1 >>@record@
IFS= \builtin read -r -d '' __hf_a <@record@
if [[ "$__hf_a" == *@path@* ]]; then
__hf_a=${__hf_a#"${__hf_a%%[0-9]*}"}
\builtin history -d "${__hf_a%%[^0-9]*}"
fi
fi
@remember@
fi"""


# In a UTF-8 locale bash measures the rest of a word at each quote in it, so one long word takes quadratic time.
_CHUNK_BYTES = 32 * 1024


def wrapped(job: Job) -> Wrapped:
    record = literal(job.record)
    path = typeable(job.script)
    remember = b"" if job.entry is None else rb"\builtin history -s -- " + literal(job.entry)
    script = fill(
        _SCRIPT,
        token=job.token,
        record=record,
        hook=_HOOK,
        env=b"\n".join(rb"\builtin export " + name + b"=" + literal(value) for name, value in job.env.items()),
        history=fill(_HISTORY, record=record, path=literal(path), remember=remember),
        go=_PROBE if job.source is None else fill(_RUN, source=_append(job.source)),
    )
    return Wrapped(script, CLEAR + rb" \. " + path + rb';"${__hf_[@]}"' + b"\r")


def _append(source: bytes) -> bytes:
    chunks = (source[at : at + _CHUNK_BYTES] for at in range(0, len(source), _CHUNK_BYTES))
    return b"\n".join(b"__hf_s+=" + literal(chunk) for chunk in chunks)
