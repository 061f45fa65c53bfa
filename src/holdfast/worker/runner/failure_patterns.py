"""Recognises errors in a tool's last lines: a table of patterns, the first match wins. Pure; the text is untrusted.

Test runners come first: a test that fails because a connection was refused is a failing test. Then compilers and
checkers, then missing programs and rights. Each gives the set of failing items, so that two attempts can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

TEXT_MAX = 256 << 10  # characters read, from the end: a long summary; the patterns below are linear in it
FAILING_MAX = 200  # items of a failing set that are stored: enough to see it shrink
ITEM_MAX = 300  # characters of one item


class Found(NamedTuple):
    """`failing` is the normalised set; `error` the line a person should read."""

    type: str
    error: str
    failing: tuple[str, ...] = ()


_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_PATH = re.compile(r"(?<![\w.:])(?:/[\w.+@~-]+)+/([\w.+@~-]+)")
_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*|\b\d\d?:\d\d:\d\d(?:\.\d+)?\b|\b\d+(?:\.\d+)?\s?(?:m?s|seconds)\b"
)
_HEX = re.compile(r"\b[0-9a-f]{8,}\b")
_NUMBER = re.compile(r"(?<![A-Za-z\d])\d+")  # numbers in a code, such as E0308, stay


def plain(text: str) -> str:
    """The end of a log as lines of text: no colours, no carriage returns, no other control characters."""
    text = _ANSI.sub("", text[-TEXT_MAX:]).replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in text if c in "\n\t" or c.isprintable())


def normal(line: str) -> str:
    """An error without times, addresses, folders and numbers, to compare it with others."""
    line = _TIME.sub("T", _ADDRESS.sub("@", line.strip()))
    line = _HEX.sub("H", _PATH.sub(r"\1", line))
    return _NUMBER.sub("N", line)[:ITEM_MAX]


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """Unique, sorted and bounded, to compare sets."""
    return tuple(sorted({i.strip()[:ITEM_MAX] for i in items if i.strip()})[:FAILING_MAX])


# -- test runners: the names of what failed ----------------------------------------------------------------------------

_PYTEST = re.compile(r"^(?:FAILED|ERROR) ([^\n]+?)(?: - [^\n]*)?$", re.M)
_PYTEST_COUNT = re.compile(r"^=* ?(?:\d+ \w+, )*(\d+) (?:failed|errors?)\b[^\n]* in [\d.]+s", re.M)
_COLLECTING = re.compile(r"^E +ModuleNotFoundError: (No module named [^\n]+)$", re.M)
_UNITTEST = re.compile(r"^(?:FAIL|ERROR): (\w[^\n]*)$", re.M)
_GO_TEST = re.compile(r"^\s*--- FAIL: (\S+)", re.M)
_CARGO_TEST = re.compile(r"^test (\S+) \.\.\. FAILED$", re.M)
_JEST = re.compile(r"^\s*(?:●|✕|✗|\u00d7) ([^\n]+?)(?: \(?[\d.]+ ?m?s\)?)?$", re.M)
_JEST_MARK = re.compile(r"^\s*(?:Tests:|Test Files|Test Suites:) .*\bfailed\b", re.M)
_TAP = re.compile(r"^\s*not ok \d+(?: -)? ?([^\n#]*)", re.M)
_CTEST = re.compile(r"^\s*\d+ - (\S+) \(Failed\)$", re.M)


def _tests(text: str) -> Found | None:
    if failing := unique(_ids(_PYTEST.findall(text))):
        missing = _COLLECTING.search(text)
        if missing and not re.search(r"^FAILED ", text, re.M):
            return Found("missing_tool", missing[1], failing)  # nothing was tested: the tests could not be loaded
        return _failed(failing)
    if re.search(r"^Ran \d+ tests? in ", text, re.M) and (failing := unique(_UNITTEST.findall(text))):
        return _failed(failing)
    for pattern in (_GO_TEST, _CARGO_TEST, _CTEST, _TAP):
        if failing := unique(pattern.findall(text)):
            return _failed(failing)
    if _JEST_MARK.search(text) and (failing := unique(_JEST.findall(text))):
        return _failed(failing)
    if count := _PYTEST_COUNT.search(text):
        return Found("test_failure", count[0].strip("= "))
    return None


def _ids(found: list[str]) -> list[str]:
    """Ids of tests and files, not other lines that begin with ERROR."""
    return [one for one in found if "::" in one or re.fullmatch(r"[\w./\\-]+\.py", one)]


def _failed(failing: tuple[str, ...]) -> Found:
    more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
    return Found("test_failure", f"{failing[0]}{more}", failing)


# -- compilers and checkers: where, and what ---------------------------------------------------------------------------

_GCC = re.compile(r"^([^\s:(][^\n:]*):\d+(?::\d+)?: (?:fatal )?error: ([^\n]+)$", re.M)  # gcc, clang, mypy too
_LINK = re.compile(
    r"^[^\n]*?(undefined reference to [^\n]+|undefined symbols?[^\n]*|ld: [^\n]*error[^\n]*)$", re.M | re.I
)
_RUSTC = re.compile(r"^error(?:\[(E\d+)\])?: ([^\n]+)$(?:\s*-->\s*([^\n:]+):\d+:\d+)?", re.M)
_RUST_END = re.compile(r"^(?:aborting due to|could not compile|build failed)")
_TSC = re.compile(r"^([^\s(:][^\n(:]*)(?:\(\d+,\d+\)|:\d+:\d+)(?::| -) error (TS\d+): ([^\n]+)$", re.M)
_GO = re.compile(r"^(?:vet: )?(?:\./)?([\w./-]+\.go):\d+(?::\d+)?: ([^\n]+)$", re.M)
_RUFF = re.compile(r"^([^\s:][^\n:]*\.pyi?):\d+:\d+: ([A-Z]+\d+|invalid-syntax|SyntaxError):? ([^\n]+)$", re.M)
_RUFF_FULL = re.compile(r"^([A-Z]+\d+|invalid-syntax)(?: \[\*\])?:? ([^\n]+)\n\s*--> ([^\n:]+):\d+:\d+$", re.M)
_ESLINT = re.compile(r"^\s+\d+:\d+\s+error\s+([^\n]+?)\s{2,}(\S+)$", re.M)
_SYNTAX = re.compile(r"^(?:E +)?((?:SyntaxError|IndentationError|TabError): [^\n]+)$", re.M)
_MAKE = re.compile(r"^(?:g?make|ninja)(?:\[\d+\])?: (\*\*\* [^\n]+|build stopped[^\n]*)$", re.M)


def _builds(text: str) -> Found | None:
    for pattern, order in (
        (_TSC, "{0}: {1} {2}"),
        (_GCC, "{0}: {1}"),
        (_RUFF, "{0}: {1} {2}"),
        (_RUFF_FULL, "{2}: {0} {1}"),
        (_ESLINT, "{1}: {0}"),
    ):
        if hits := pattern.findall(text):
            return _built([order.format(*hit) for hit in hits])
    rust = [h for h in _RUSTC.findall(text) if not _RUST_END.match(h[1]) and (h[0] or h[2])]
    if rust:
        return _built([f"{path.strip() or 'rustc'}: {code + ' ' if code else ''}{said}" for code, said, path in rust])
    go = [h for h in _GO.findall(text) if not h[1].startswith("+0x")]
    if go and (re.search(r"^# \S+", text, re.M) or re.search(r"^(?:vet: )?\S+\.go:\d+:\d+: ", text, re.M)):
        return _built([f"{path}: {said}" for path, said in go])
    if hits := _LINK.findall(text):
        return _built(hits)
    if hits := _SYNTAX.findall(text):
        return _built(hits[-1:])
    return None


def _built(errors: list[str]) -> Found:
    return Found("build_error", errors[0].strip()[:ITEM_MAX], unique(normal(e) for e in errors))


# -- what the machine lacks or refuses ---------------------------------------------------------------------------------

_MISSING = re.compile(
    r"^[^\n]*?(?:: (?:\d+: )?([\w./+-]+): (?:command )?not found|command not found: ([\w./+-]+)"
    r"|\b(?:executable file not found in|No such file or directory: )[^\n]*"
    r"|(?:^|[\s/])(?:\w*sh|env|exec|make|sudo|xargs|timeout|nohup): (?:\w+ \d+: )?[^\n]*: No such file or directory"
    r"|spawn (\S+) ENOENT|ModuleNotFoundError: No module named [^\n]+|Cannot find module [^\n]+"
    r"|error while loading shared libraries: [^\n]+|unable to locate package [^\n]+"
    r")[^\n]*$",
    re.M | re.I,
)
_PERMISSION = re.compile(
    r"^[^\n]*\b(?:permission denied|operation not permitted|EACCES|EPERM|read-only file system|access denied"
    r"|authentication (?:failed|required)|not logged in|invalid api key|401 unauthorized|403 forbidden)\b[^\n]*$",
    re.M | re.I,
)
_NETWORK = re.compile(
    r"^[^\n]*\b(?:could not resolve host|name or service not known|temporary failure in name resolution"
    r"|nodename nor servname|no such host|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|ENOTFOUND|EAI_AGAIN"
    r"|connection (?:was )?(?:refused|reset|timed out|closed by remote)|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EPIPE"
    r"|network is unreachable|no route to host|host is down|failed to connect to"
    r"|(?:ssl|tls)[^\n]{0,80}(?:error|failed|handshake|certificate)|certificate verify failed|CERT_\w+"
    r"|self[- ]signed certificate|503 service unavailable|502 bad gateway|429 too many requests|rate limit"
    r"|overloaded_error|proxyerror|read timed out|max retries exceeded)\b[^\n]*$",
    re.M | re.I,
)
_CRASH = re.compile(
    r"^[^\n]*\b(?:segmentation fault|core dumped|out of memory|oom-kill|cannot allocate memory|MemoryError"
    r"|JavaScript heap out of memory|double free|stack smashing|Bus error|Illegal instruction"
    r"|AddressSanitizer|fatal runtime error|std::bad_alloc|Aborted|Killed)\b[^\n]*$",
    re.M,
)
_NPM = re.compile(r"^npm (?:ERR!|error) (?!code|errno|syscall|path|A complete log|command)([^\n]+)$", re.M)


def _last(pattern: re.Pattern[str], kind: str) -> Callable[[str], Found | None]:
    """The last such line: earlier errors may have been handled."""

    def look(text: str) -> Found | None:
        hits = [m[0].strip() for m in pattern.finditer(text)]
        return Found(kind, hits[-1][:ITEM_MAX], (normal(hits[-1]),)) if hits else None

    return look


def _npm(text: str) -> Found | None:
    hits = _NPM.findall(text)
    return Found("build_error", hits[0].strip()[:ITEM_MAX], (normal(hits[0]),)) if hits else None


_TABLE: tuple[Callable[[str], Found | None], ...] = (
    _tests,
    _builds,
    _last(_NETWORK, "network"),
    _last(_PERMISSION, "permission"),
    _last(_MISSING, "missing_tool"),
    _last(_CRASH, "crash"),
    _npm,
    _last(_MAKE, "build_error"),
)


def recognise(text: str) -> Found | None:
    """The failure that the end of a log shows, or None."""
    text = plain(text)
    return next((found for look in _TABLE if (found := look(text))), None)


def last_line(text: str) -> str:
    """The last non-empty line: the best guess at an unrecognised error."""
    lines = [line.strip() for line in plain(text).splitlines()]
    return next((line for line in reversed(lines) if re.search(r"\w", line)), "")[:ITEM_MAX]
