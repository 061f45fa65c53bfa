"""Removes likely secrets from a text before it is stored. Pure.

It knows common forms only: a password that looks like a word is not recognised. Secrets belong into a no-echo
prompt; this is for commands that other operators wrote.
"""

from __future__ import annotations

import re

HIDDEN = "[hidden]"
TEXT_MAX = 16 << 10  # characters searched: more is cut first, so that no pattern runs for long

_NAME = r"(?:api.?key|access.?key|private.?key|secret|token|passw|passphrase|pwd|credential|auth)"
_VALUE = r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'&;|<>]+)"
# Bounded on purpose ({0,40}): a long run of word characters must not be tried from each of its beginnings.
_RULES = [
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL), HIDDEN),
    (re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{0,80}:)[^\s/@]+@", re.IGNORECASE), rf"\1{HIDDEN}@"),
    (
        re.compile(r"(\b(?:proxy-)?authorization\s*:\s*)(?:(?:bearer|basic|token|digest)\s+)?[^\s\"']+", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(\bbearer\s+)[^\s\"']{8,}", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(rf"([\w.-]{{0,40}}{_NAME}[\w.-]{{0,40}}[\"']?\s*[=:]\s*){_VALUE}", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(rf"(--?[\w-]{{0,40}}{_NAME}[\w-]{{0,40}}\s+)(?!-){_VALUE}", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(rf"(\bset\s+[\w.-]{{0,40}}{_NAME}[\w.-]{{0,40}}\s+){_VALUE}", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(r"(\b(?:mysql|mysqldump|mariadb|mysqladmin)\b[^\n|;&]{0,200}?\s-p)(?=\S)[^\s]+"), rf"\1{HIDDEN}"),
    (re.compile(r"(\bcurl\b[^\n|;&]{0,400}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,80}:)[^\s\"']+"), rf"\1{HIDDEN}"),
    (
        re.compile(
            r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
            r"|\bxox[abeprs]-[\w-]{10,}|\bAKIA[A-Z0-9]{12,}|\bAIza[\w-]{30,}|\bnpm_\w{30,}|\bhf_\w{20,}"
            r"|\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?"
        ),
        HIDDEN,
    ),
    # A long run of mixed letters and digits is no word; hex alone may be a commit and stays.
    (re.compile(r"(?<![\w+=-])(?=[\w+=-]*[a-z])(?=[\w+=-]*[A-Z])(?=[\w+=-]*\d)[A-Za-z0-9+=_-]{32,}"), HIDDEN),
]

_ACTS = re.compile(r"[\n;|&`<>]|\$\(")  # with one of these a shell does more than pass a value on


def hides_acts(command: str) -> bool:
    """Whether `redact` removes more of a command than values, so that the rest cannot be judged."""
    for rule, instead in _RULES:
        command = command[:TEXT_MAX]
        for found in rule.finditer(command):
            if _ACTS.search(found.group()[len(found.group(1)) if rule.groups else 0 :]):
                return True
        command = rule.sub(instead, command)
    return False


def redact(text: str) -> str:
    """The text without likely secrets; its length does not reveal theirs."""
    for rule, instead in _RULES:
        text = rule.sub(instead, text[:TEXT_MAX])
    return text


def bounded(text: str, characters: int) -> str:
    """The beginning of the redacted text, with the number of omitted characters."""
    clean = redact(text)
    cut = len(text) - TEXT_MAX if len(text) > TEXT_MAX else 0
    over = len(clean) - characters
    return clean if over <= 0 and not cut else f"{clean[:characters]} … [{max(over, 0) + cut} more characters]"
