"""Failures by their logs: real tools where this machine has them, and short texts in the manner of the others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.worker.runner.classify import TYPES, Evidence, classify
from holdfast.worker.runner.failure_patterns import normal, recognise

Json = dict
THREE_FAIL = "def test_a():\n    assert 0\ndef test_b():\n    assert 1 == 2\ndef test_c():\n    raise OSError(111, 'Connection refused')\n"

# name -> (tool, files, command, type, a part of each failing item or of the detail)
REAL: dict[str, tuple[str, dict[str, str], list[str], str, list[str]]] = {
    "pytest": (
        sys.executable,
        {"test_x.py": THREE_FAIL + "def test_d():\n    pass\n"},
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        "test_failure",
        ["test_x.py::test_a", "test_x.py::test_b", "test_x.py::test_c"],
    ),
    "pytest cannot load": (
        sys.executable,
        {"test_y.py": "import nothing_of_that_name\n"},
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        "missing_tool",
        ["test_y.py"],
    ),
    "unittest": (
        sys.executable,
        {
            "test_u.py": "import unittest\nclass T(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(1, 2)\n    def test_two(self):\n        raise KeyError(3)\n"
        },
        [sys.executable, "-m", "unittest", "test_u"],
        "test_failure",
        ["test_one", "test_two"],
    ),
    "gcc": ("gcc", {"a.c": "int main(void){ return x + y; }\n"}, ["gcc", "a.c"], "build_error", ["x", "y"]),
    "gcc without a header": ("gcc", {"h.c": '#include "gone.h"\n'}, ["gcc", "-c", "h.c"], "build_error", ["gone.h"]),
    "linker": (
        "gcc",
        {"b.c": "int f(void); int main(void){ return f(); }\n"},
        ["gcc", "b.c"],
        "build_error",
        ["undefined reference"],
    ),
    "mypy": (
        sys.executable,
        {"m.py": "x: int = 'a'\ny: str = 1\n"},
        [sys.executable, "-m", "mypy", "--no-incremental", "--cache-dir=/dev/null", "m.py"],
        "build_error",
        ["m.py", "m.py"],
    ),
    "ruff": (
        "ruff",
        {"r.py": "import os\nimport sys\n"},
        ["ruff", "check", "--no-cache", "r.py"],
        "build_error",
        ["os", "sys"],
    ),
    "python syntax": (sys.executable, {"s.py": "def f(:\n"}, [sys.executable, "s.py"], "build_error", ["SyntaxError"]),
    "make": ("make", {"Makefile": "all:\n\tfalse\n"}, ["make"], "build_error", ["Makefile"]),
    "make around gcc": (
        "gcc",
        {"Makefile": "all:\n\tgcc -c a.c\n", "a.c": "int f(void){ return x; }\n"},
        ["make"],
        "build_error",
        ["a.c"],
    ),
    "node --test": (
        "node",
        {"t.test.js": "const test=require('node:test');test('adds',()=>{throw new Error('no')});test('ok',()=>{});\n"},
        ["node", "--test", "t.test.js"],
        "test_failure",
        ["adds"],
    ),
    "node without a module": ("node", {}, ["node", "-e", 'require("nope")'], "missing_tool", ["Cannot find module"]),
    "npm": (
        "npm",
        {"package.json": '{"name": "x", "scripts": {}}'},
        ["npm", "run", "build"],
        "build_error",
        ["Missing script"],
    ),
    "connection refused": ("curl", {}, ["curl", "-sS", "http://127.0.0.1:1/"], "network", ["Failed to connect"]),
    "connection refused in Python": (
        sys.executable,
        {},
        [sys.executable, "-c", "import socket; socket.create_connection(('127.0.0.1', 1))"],
        "network",
        ["Connection refused"],
    ),
    "no such command": ("bash", {}, ["bash", "-c", "nosuchtool --version"], "missing_tool", ["nosuchtool"]),
    "no such command in sh": ("sh", {}, ["sh", "-c", "nosuchtool"], "missing_tool", ["nosuchtool"]),
    "no such file": (sys.executable, {}, [sys.executable, "-c", "open('gone.txt')"], "missing_tool", ["gone.txt"]),
    "no such module": (
        sys.executable,
        {},
        [sys.executable, "-c", "import nothing_of_that_name"],
        "missing_tool",
        ["nothing_of_that_name"],
    ),
    "no such script": ("bash", {}, ["bash", "-c", "./gone.sh"], "missing_tool", ["gone.sh"]),
    "not executable": ("bash", {"x.sh": "echo hi\n"}, ["bash", "-c", "./x.sh"], "permission", ["x.sh"]),
    "segmentation fault": ("bash", {}, ["bash", "-c", "bash -c 'kill -SEGV $$'; exit $?"], "crash", ["SIGSEGV"]),
    "killed": ("bash", {}, ["bash", "-c", "kill -KILL $$"], "crash", ["SIGKILL"]),
    "a plain exit code": (
        "bash",
        {},
        ["bash", "-c", "echo 'the sums differ by 3'; exit 4"],
        "verification_failed",
        ["the sums differ"],
    ),
}

# What a machine may lack, or have only with its user's own settings: what rustc printed, and by hand after each tool's manner.
TEXTS: dict[str, tuple[str, str, list[str]]] = {
    "rustc": (
        'error[E0308]: mismatched types\n --> a.rs:1:26\n  |\n1 | fn main() { let x: i32 = "a"; foo(); }\n  |                    ---   ^^^ expected `i32`, found `&str`\n  |                    |\n  |                    expected due to this\n\nerror[E0425]: cannot find function `foo` in this scope\n --> a.rs:1:31\n  |\n1 | fn main() { let x: i32 = "a"; foo(); }\n  |                               ^^^ not found in this scope\n\nerror: aborting due to 2 previous errors\n\nSome errors have detailed explanations: E0308, E0425.\nFor more information about an error, try `rustc --explain E0308`.\n',
        "build_error",
        ["E0308", "E0425"],
    ),
    "go test": (
        "--- FAIL: TestSum (0.00s)\n    sum_test.go:9: got 3, want 4\n--- FAIL: TestMul/zero (0.01s)\nFAIL\nFAIL\tdemo/calc\t0.004s\n",
        "test_failure",
        ["TestMul/zero", "TestSum"],
    ),
    "go build": (
        "# demo/calc\n./calc.go:7:9: undefined: add\n./calc.go:9:2: missing return\n",
        "build_error",
        ["missing return", "undefined: add"],
    ),
    "tsc": (
        "src/app.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.\nsrc/b.ts(1,1): error TS2304: Cannot find name 'x'.\n",
        "build_error",
        ["TS2322 Type 'string'", "TS2304 Cannot find"],
    ),
    "cargo test": (
        "running 2 tests\ntest sums::adds ... FAILED\ntest sums::ok ... ok\n\nfailures:\n    sums::adds\n",
        "test_failure",
        ["sums::adds"],
    ),
    "jest": (
        "FAIL src/sum.test.js\n  ● sum \u203a adds two numbers\n\n    expect(received).toBe(expected)\n\nTests:       1 failed, 3 passed, 4 total\n",
        "test_failure",
        ["sum \u203a adds two numbers"],
    ),
    "clang": (
        "main.cpp:3:10: fatal error: 'gone.hpp' file not found\n1 error generated.\n",
        "build_error",
        ["gone.hpp"],
    ),
    "DNS": (
        "fatal: unable to access 'https://code.invalid/x.git/': Could not resolve host: code.invalid\n",
        "network",
        ["Could not resolve host"],
    ),
    "connection reset": (
        "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))\n",
        "network",
        ["reset by peer"],
    ),
    "TLS": (
        "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)\n",
        "network",
        ["certificate"],
    ),
    "out of memory": (
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n",
        "crash",
        ["heap out of memory"],
    ),
    "a colourful log": (
        "\x1b[31mFAILED\x1b[0m tests/test_a.py::\x1b[1mtest_one\x1b[0m - assert 0\n",
        "test_failure",
        ["tests/test_a.py::test_one"],
    ),
}


def run(files: dict[str, str], command: list[str], folder: Path) -> tuple[int, str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "PATH": path,
        "PYTEST_ADDOPTS": "",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "HOME": str(folder),
    }
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def judge(code: int, text: str) -> Json:
    result = {"command": "make check", "exit_code": code, "state": "failed", "tail": text}
    return classify(Evidence(exit_code=0, verification=[result]))


def told(name: str, got: Json) -> None:
    print(f"{name:30} {got['failure_type']:20} {len(got['failing'])} failing  {got['failure_detail'][:90]}")  # noqa: T201


@pytest.mark.parametrize("name", REAL)
def test_a_log_that_a_real_tool_wrote_is_classified(name: str, tmp_path: Path) -> None:
    tool, files, command, kind, parts = REAL[name]
    if not shutil.which(tool, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"):
        pytest.skip(f"no {tool} here")
    code, text = run(files, command, tmp_path)
    assert code != 0, text
    got = judge(code, text)
    told(name, got)
    assert got["failure_type"] == kind, (got, text)
    said = [*got["failing"], got["failure_detail"]]
    assert all(any(part.lower() in one.lower() for one in said) for part in parts), (got, text)
    if kind == "test_failure":
        assert len(got["failing"]) == len(parts), got


@pytest.mark.parametrize("name", TEXTS)
def test_a_log_in_the_manner_of_another_tool_is_classified(name: str) -> None:
    text, kind, parts = TEXTS[name]
    got = judge(1, text)
    told(name, got)
    assert got["failure_type"] == kind, got
    assert got["failure_type"] in TYPES
    said = [*got["failing"], got["failure_detail"]]
    assert all(any(part in one for one in said) for part in parts), got


ENDINGS: list[tuple[str, Evidence, str, str]] = [
    (
        "time was up, nothing changed",
        Evidence(timed_out=True, timeout_s=60, changed=0, signal="SIGTERM"),
        "no_progress",
        "no file had changed",
    ),
    (
        "time was up, with changes",
        Evidence(timed_out=True, timeout_s=60, changed=2, signal="SIGTERM"),
        "timeout",
        "2 changed files were kept",
    ),
    (
        "the verification takes too long",
        Evidence(
            exit_code=0, verification=[{"command": "make check", "state": "timeout", "exit_code": None, "tail": ""}]
        ),
        "timeout",
        "make check",
    ),
    ("the backend is not there", Evidence(missing="claude"), "missing_tool", "claude"),
    ("the backend was killed", Evidence(signal="SIGKILL", tail="working on it\n"), "crash", "SIGKILL"),
    (
        "the backend gave up",
        Evidence(exit_code=1, tail="I could not find the file to edit.\n"),
        "agent_error",
        "could not find the file",
    ),
    (
        "the backend has no network",
        Evidence(exit_code=1, tail="API error: getaddrinfo ENOTFOUND api.invalid\n"),
        "network",
        "ENOTFOUND",
    ),
    ("the backend has no key", Evidence(exit_code=1, tail="Invalid API key\n"), "permission", "Invalid API key"),
    ("an unknown end", Evidence(exit_code=None, known=False), "unknown", "exit status is unknown"),
    ("a step is in doubt", Evidence(in_doubt="start"), "in_doubt", "start"),
    (
        "env finds no program",
        Evidence(exit_code=127, tail="env: 'codex': No such file or directory\n"),
        "missing_tool",
        "codex",
    ),
    (
        "the backend lost its network, and its tests fail",
        Evidence(
            exit_code=1,
            changed=1,
            tail="API error: ECONNRESET\n",
            verification=[{"command": "t", "state": "failed", "exit_code": 1, "tail": "FAILED t.py::test_a - x\n"}],
        ),
        "network",
        "ECONNRESET",
    ),
    (
        "the backend gave up, and its tests fail",
        Evidence(
            exit_code=1,
            changed=1,
            tail="I give up\n",
            verification=[{"command": "t", "state": "failed", "exit_code": 1, "tail": "FAILED t.py::test_a - x\n"}],
        ),
        "test_failure",
        "t.py::test_a",
    ),
    (
        "the file that was to be made is not there",
        Evidence(
            exit_code=0,
            verification=[
                {
                    "command": "grep x out.txt",
                    "state": "failed",
                    "exit_code": 2,
                    "tail": "grep: out.txt: No such file or directory\n",
                }
            ],
        ),
        "verification_failed",
        "out.txt",
    ),
    (
        "cut off, and its tests fail",
        Evidence(
            timed_out=True,
            changed=1,
            verification=[{"command": "t", "state": "failed", "exit_code": 1, "tail": "FAILED t.py::test_a - x\n"}],
        ),
        "test_failure",
        "t.py::test_a",
    ),
]


@pytest.mark.parametrize(("name", "evidence", "kind", "part"), ENDINGS, ids=[e[0] for e in ENDINGS])
def test_how_an_attempt_ended_is_classified(name: str, evidence: Evidence, kind: str, part: str) -> None:
    got = classify(evidence)
    told(name, got)
    assert (got["failure_type"], got["convergence"]) == (kind, "first")
    assert part in got["failure_detail"]
    assert got["suggested_focus"]


def failing(*names: str) -> Evidence:
    tail = "".join(f"FAILED t.py::{n} - assert 0\n" for n in names)
    return Evidence(exit_code=0, verification=[{"command": "t", "state": "failed", "exit_code": 1, "tail": tail}])


def story(*attempts: Evidence, stuck_after: int = 3) -> list[str]:
    earlier: list[Json] = []
    for one in attempts:
        earlier.append(classify(one, earlier, stuck_after))
    print(" -> ".join(f"{len(c['failing'])}:{c['convergence']}" for c in earlier))  # noqa: T201
    return [c["convergence"] for c in earlier]


def test_a_failing_set_that_shrinks_converges() -> None:
    assert story(failing(*"abcde"), failing(*"abc"), failing("a")) == ["first", "converging", "converging"]


def test_the_same_signature_three_times_is_stuck() -> None:
    assert story(failing("a", "b"), failing("b", "a"), failing("a", "b")) == ["first", "steady", "stuck"]
    assert story(failing("a"), failing("a"), stuck_after=2) == ["first", "stuck"]


def test_what_interrupts_a_row_of_the_same_begins_it_anew() -> None:
    assert story(failing("a"), failing("a"), failing("b"), failing("a"), failing("a")) == [
        "first",
        "steady",
        "steady",
        "steady",
        "steady",
    ]


def test_a_failing_set_that_grows_diverges() -> None:
    assert story(failing("a"), failing("a", "b"), failing("a", "b", "c")) == ["first", "diverging", "diverging"]


def test_what_builds_has_come_further_than_what_does_not() -> None:
    broken = Evidence(
        exit_code=0, verification=[{"command": "t", "state": "failed", "exit_code": 1, "tail": "a.c:1:2: error: no\n"}]
    )
    assert story(broken, failing("a", "b")) == ["first", "converging"]
    assert story(failing("a"), broken) == ["first", "diverging"]


def test_numbers_paths_addresses_and_times_do_not_make_another_error() -> None:
    one = "2026-01-02T03:04:05Z worker 17 at 0x7f00aa: cannot open /tmp/a1/b/config.json (took 3.2s)"
    two = "2027-11-12T13:14:15Z worker 4 at 0x10: cannot open /var/tmp/q/config.json (took 911 ms)"
    assert normal(one) == normal(two)
    endings = [Evidence(exit_code=1, tail=t) for t in (one, two, one)]
    assert story(*endings) == ["first", "steady", "stuck"]


def test_hostile_output_costs_no_more_than_its_length_and_makes_no_control_characters() -> None:
    for text in ("/" * 300_000, "a:1:" * 80_000, "FAILED " * 50_000, "\x1b]0;" + "x" * 300_000, "ssl " * 70_000):
        recognise(text)
    got = classify(Evidence(exit_code=1, tail="\x1b[2J\x07gave up\x00 because\n"))
    assert all(c.isprintable() for c in got["failure_detail"])
