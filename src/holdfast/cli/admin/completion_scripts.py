"""Completion scripts, generated from the commands' parsers so that the two cannot differ."""

from __future__ import annotations

import argparse
import re

from ..main import COMMANDS, parser_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# What an argument can be: fixed words, or one of the kinds `session`, `file`, `folder`, `command`, `any`.
_KINDS = {"SESSION": "session", "FILE": "file", "DIR": "folder", "CMD": "command"}
_WORDS = {
    "SIGNAL": "TERM KILL INT HUP QUIT STOP CONT USR1 USR2 WINCH",
    "CONDITION": "exit input quiet port= text= done=",
    "POLICY": "never on-failure always",
}
# These commands complete running sessions only; the others complete ended sessions too.
_LIVE_ONLY = frozenset({"attach", "send", "exec", "kill", "stop", "take", "release", "hand"})


class Argument:
    """An option or a positional: its names (none for a positional), help, and what its value can be."""

    __slots__ = ("help", "kind", "metavar", "names", "repeats", "words")

    def __init__(self, action: argparse.Action) -> None:
        self.names = tuple(action.option_strings)
        self.metavar = str(action.metavar or action.dest.upper())
        self.help = re.sub(r"\s+", " ", (action.help or "").replace("%%", "%"))
        self.repeats = action.nargs in ("*", "+")
        choices = action.choices
        self.words = " ".join(map(str, choices)) if choices is not None else _WORDS.get(self.metavar, "")
        self.kind = "none" if action.nargs == 0 else "words" if self.words else _KINDS.get(self.metavar, "any")


class Command:
    """One command and its arguments."""

    __slots__ = ("name", "options", "positionals", "sessions", "summary")

    def __init__(self, name: str, summary: str, arguments: Iterable[Argument]) -> None:
        self.name, self.summary = name, summary
        known = list(arguments)
        self.options = [a for a in known if a.names]
        self.positionals = [a for a in known if not a.names]
        self.sessions = "live" if name in _LIVE_ONLY else "all"


def describe(name: str) -> Command:
    shown = (a for a in parser_for(name)._actions if a.help != argparse.SUPPRESS)
    return Command(name, COMMANDS[name][1], map(Argument, shown))


def script(shell: str) -> str:
    """The whole script for one shell."""
    commands = [describe(name) for name in COMMANDS]
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](commands)


# -- bash --------------------------------------------------------------------------------------------------------

_BASH = r"""# Completion of hold for bash. Made by `hold completion bash`.
_hold_offer() { # KIND WORDS
  local word
  case $1 in
    session:*) while IFS= read -r word; do
      [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done < <(command "${COMP_WORDS[0]}" completion --sessions "${1#session:}" 2>/dev/null) ;;
    words) for word in $2; do
      [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done
      [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null ;;
    file | folder) local how=-f; [[ $1 == folder ]] && how=-d
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen $how -- "$cur")
      compopt -o filenames 2>/dev/null ;;
    command) while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -- "$cur") ;;
  esac
}

_hold_value() { # a kind, or words:A,B,C
  local words=${1#words:}
  if [[ $1 == words:* ]]; then _hold_offer words "${words//,/ }"; else _hold_offer "$1"; fi
}

_hold() {
  local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} options= values= places= n word kind
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _hold_offer words "@COMMANDS@"
    return
  fi
  case $command in
@CASES@
    *) return ;;
  esac
  # Walk to the cursor: which place is it, and does an option before it want a value?
  local place=0 wanted=
  for ((n = 2; n < COMP_CWORD; n++)); do
    word=${COMP_WORDS[n]}
    if [[ -n $wanted ]]; then wanted=
    elif [[ $word == -- ]]; then
      [[ " $places " == *" command+ "* ]] || return
      if ((n + 1 == COMP_CWORD)); then _hold_offer command; else _hold_offer file; fi
      return
    elif [[ $word == -* ]]; then
      [[ " $values " == *" $word="* ]] && wanted=${values#*"$word="} && wanted=${wanted%% *}
    else ((place++))
    fi
  done
  if [[ -n $wanted ]]; then
    _hold_value "$wanted"
  elif [[ $cur == -* ]]; then
    _hold_offer words "$options"
  else
    n=0
    for kind in $places; do
      if ((n == place)) || [[ $kind == *+ ]]; then
        _hold_value "${kind%+}"
        return
      fi
      ((n++))
    done
  fi
}

complete -F _hold hold holdfast
"""


def bash(commands: Sequence[Command]) -> str:
    cases = []
    for command in commands:
        options = " ".join(name for option in command.options for name in option.names)
        values = " ".join(
            f"{name}={_bash_kind(option, command)}"
            for option in command.options
            if option.kind != "none"
            for name in option.names
        )
        places = " ".join(_bash_kind(p, command) + ("+" if p.repeats else "") for p in command.positionals)
        cases.append(f'    {command.name}) options="{options}" values="{values}" places="{places}" ;;')
    names = " ".join(c.name for c in commands)
    return _BASH.replace("@COMMANDS@", names).replace("@CASES@", "\n".join(cases))


def _bash_kind(argument: Argument, command: Command) -> str:
    if argument.kind == "session":
        return f"session:{command.sessions}"
    return f"words:{argument.words.replace(' ', ',')}" if argument.kind == "words" else argument.kind


# -- zsh ---------------------------------------------------------------------------------------------------------

_ZSH = r"""#compdef hold holdfast
# Completion of hold for zsh. Made by `hold completion zsh`.
_hold_sessions() {
  local -a names
  names=(${(f)"$(command hold completion --sessions $1 2>/dev/null)"})
  (( $#names )) && compadd -X 'session' -- $names
}

_hold_command() { # the user's own command, with or without `--` before it
  if [[ $words[1] == -- ]]; then
    shift words
    (( CURRENT-- ))
  fi
  _normal
}

_hold() {
  if (( CURRENT == 2 )); then
    local -a commands
    commands=(
@COMMANDS@
    )
    _describe -t commands command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
@CASES@
  esac
}

if [[ $funcstack[1] == _hold ]]; then _hold "$@"; else compdef _hold hold holdfast; fi
"""


def zsh(commands: Sequence[Command]) -> str:
    names = "\n".join(f"      {_quoted(f'{c.name}:{c.summary}')}" for c in commands)
    cases = "\n".join(f"    {c.name}) _arguments -S {' '.join(_zsh_specs(c))} ;;" for c in commands)
    return _ZSH.replace("@COMMANDS@", names).replace("@CASES@", cases)


def _zsh_specs(command: Command) -> list[str]:
    specs = []
    for option in command.options:
        value = "" if option.kind == "none" else f":{_colons(option.metavar)}:{_zsh_action(option, command)}"
        specs += [_quoted(f"*{name}[{_brackets(option.help)}]{value}") for name in option.names]
    for n, place in enumerate(command.positionals, 1):
        label = _colons(place.metavar)
        if place.kind == "command":
            specs.append(_quoted(f"*::{label}: _hold_command"))
        else:
            specs.append(_quoted(f"{'*' if place.repeats else n}:{label}:{_zsh_action(place, command)}"))
    return specs


def _zsh_action(argument: Argument, command: Command) -> str:
    """The leading blank keeps zsh from adding its own arguments to the function call."""
    return {
        "session": f" _hold_sessions {command.sessions}",
        "file": "_files",
        "folder": "_files -/",
        "words": f"({argument.words})",
        "command": "_command_names -e",
    }.get(argument.kind, " ")


def _colons(text: str) -> str:
    return text.replace(":", "\\:").replace("[", "").replace("]", "")


def _brackets(text: str) -> str:
    return text.replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


# -- fish --------------------------------------------------------------------------------------------------------

_FISH = r"""# Completion of hold for fish. Made by `hold completion fish`.
function __hold_is --description 'the command being typed is one of these'
    set -l typed (commandline -opc)
    test (count $typed) -ge 2; and contains -- $typed[2] $argv
end

function __hold_first --description 'the command itself is being typed'
    test (count (commandline -opc)) -eq 1
end

function __hold_sessions
    command hold completion --sessions $argv[1] 2>/dev/null
end

for program in hold holdfast
    complete -c $program -e
    complete -c $program -f
@LINES@
end
"""


def fish(commands: Sequence[Command]) -> str:
    lines = []
    for c in commands:
        lines.append(f"-n __hold_first -a {c.name} -d {_fish_quoted(c.summary)}")
        here = f"-n '__hold_is {c.name}'"
        for option in c.options:
            names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
            value = {"none": "", "file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'"}.get(option.kind)
            if value is None:
                value = f" -x -a {_fish_quoted(option.words)}" if option.words else " -x"
            lines.append(f"{here} {names}{value} -d {_fish_quoted(option.help)}")
        for place in c.positionals:
            offer = {
                "session": f" -a '(__hold_sessions {c.sessions})'",
                "words": f" -a {_fish_quoted(place.words)}",
                "file": " -F",
                "command": " -F -a '(__fish_complete_command)'",
            }.get(place.kind)
            if offer:
                lines.append(here + offer)
    return _FISH.replace("@LINES@", "\n".join(f"    complete -c $program {line}" for line in lines))


def _quoted(text: str) -> str:
    """In single quotes, for a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
