"""Configuration text that people wrote: our values go in and out, and no other byte moves."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cli.agents.connecting import agent_programs, change_plan, json_edit, outdated, toml_edit
from holdfast.cli.agents.connecting.agent_programs import File, Value
from holdfast.cli.agents.connecting.json_positions import BrokenError, scan
from holdfast.model.errors import HoldfastError
from tests.support.soak import examples

ENTRY = {"command": "/opt/hold", "args": ["mcp"]}
SERVERS = [Value(("mcpServers", "holdfast"), ENTRY)]
HOOKS = [Value(("hooks", e), g, append=True) for e, g in agent_programs.claude_hooks(["/opt/bin/hold"], {})]


def file(form: str, values: list[Value] | None = None) -> File:
    path = ("mcp_servers", "holdfast") if form == "toml" else ("mcpServers", "holdfast")
    return File("/x/config", form, values or [Value(path, ENTRY)], False)


JSON_TEXTS = [
    "{}",
    "{ }",
    "{\n}\n",
    "",
    "\n",
    '{"a": 1}',
    '{"a":1,"mcpServers":{}}',
    '{\n    "a": [1,\n2]\n}',
    '{\r\n  "a": 1\r\n}\r\n',
    '{\n\t"mcpServers": {\n\t\t"x": {"command": "y"}\n\t}\n}',
    '\ufeff{"a": 1}',
    '{"mcpServers": {"x": {"command": "y"}}, "z": 1}\n',
    '{\n  "b": "\\u00e9 é ☃ }",\n  "a": null\n}\n',
    '{"mcpServers": {"holdfast": {"command": "/mine", "env": {"K": "v"}}, "x": {}}}',
    '{"a": 1, "a": 2}',
]
COMMENTED = [
    '// mine\n{\n  // first\n  "a": 1 // behind\n}\n',
    '{\n  "a": 1, // behind\n}\n',
    "{\n  /* none yet */\n}\n",
    '{\n  "mcpServers": {\n    "x": {}, // x\n    /* y */ "y": {} /* z */\n  } // end\n}\n',
    '{"a": 1,}',
    '{\n  "mcpServers": {}, // empty\n  "b": "// no comment"\n}',
]
TOML_TEXTS = [
    "",
    'model = "o4"\n',
    "# only a comment",
    '[mcp_servers.x]\ncommand = "y" # why\n\n\n[tui]\nnotify = true',
    "a = '''\n[mcp_servers.other]\n'''\n",
    '[mcp_servers]\n[mcp_servers.x]\r\ncommand = "y"\r\n',
    '[mcp_servers.holdfast]\ncommand = "/old"\n[mcp_servers.holdfast.env]\nA = "b"\n\n# about z\n[z]\n',
]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        *(("json", t) for t in JSON_TEXTS),
        *(("jsonc", t) for t in JSON_TEXTS + COMMENTED),
        *(("toml", t) for t in TOML_TEXTS),
    ],
)
def test_connecting_adds_our_value_and_nothing_else_and_undoing_gives_every_byte_back(form: str, text: str) -> None:
    wanted = file(form)
    change = change_plan.connect(wanted, text, None)
    assert change.after is not None
    before, after = change_plan.read(text, form), change_plan.read(change.after, form)
    path = wanted.values[0].path
    assert after[path[0]][path[1]] == ENTRY
    after[path[0]].pop(path[1])
    before.get(path[0], {}).pop(path[1], None)
    assert {k: v for k, v in after.items() if v != {}} == {k: v for k, v in before.items() if v != {}}
    again = change_plan.connect(wanted, change.after, change.record(False))
    assert again.what == "none"
    assert change_plan.disconnect(wanted, change.after, change.record(False)).after == text


def test_a_file_that_we_made_goes_away_again_and_its_skeleton_with_it() -> None:
    for form in ("json", "jsonc", "toml"):
        made = change_plan.connect(file(form), None, None)
        assert made.what == "made"
        assert change_plan.disconnect(file(form), made.after, made.record(True)).what == "removed"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", '{\n  "a": 1\n}\n'),
        ("jsonc", '{\n  "a": 1 // behind\n}\n'),
        ("json", '{\n  "mcpServers": {"x": {}}\n}\n'),
        ("toml", "a = 1 # one\n"),
    ],
)
def test_what_others_wrote_meanwhile_stays_when_we_leave(form: str, text: str) -> None:
    change = change_plan.connect(file(form), text, None)
    assert change.after is not None
    later = change.after.replace('"a": 1', '"a": 1, "later": true').replace("a = 1", "later = true\na = 1")
    later = later.replace('"x": {}', '"x": {}, "y": {}')
    left = change_plan.disconnect(file(form), later, change.record(False)).after
    assert left is not None
    assert "holdfast" not in left
    expected = change_plan.read(
        text.replace('"a": 1', '"a": 1, "later": true')
        .replace("a = 1", "later = true\na = 1")
        .replace('"x": {}', '"x": {}, "y": {}'),
        form,
    )
    assert change_plan.read(left, form) == expected
    assert ("// behind" in left) == ("// behind" in text)
    assert ("# one" in left) == ("# one" in text)


def test_the_hooks_of_others_stay_in_their_places_and_ours_of_another_installation_are_replaced() -> None:
    theirs: dict[str, Any] = {
        "hooks": {
            "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
            "SessionStart": [{"hooks": [{"type": "command", "command": "/old/place/hold hook claude", "timeout": 5}]}],
        },
        "model": "opus",
    }
    text = json.dumps(theirs, indent=2)
    wanted = File("/x/settings.json", "json", HOOKS, False)
    change = change_plan.connect(wanted, text, None)
    assert change.after is not None
    data = change_plan.read(change.after, "json")
    assert data["hooks"]["Stop"][0] == theirs["hooks"]["Stop"][0]
    assert [agent_programs.is_ours(g) for g in data["hooks"]["Stop"]] == [False, True]
    assert [g["hooks"][0]["command"] for g in data["hooks"]["SessionStart"]] == ["/opt/bin/hold hook claude"]
    assert change_plan.connect(wanted, change.after, change.record(False)).what == "none"
    assert change_plan.disconnect(wanted, change.after, change.record(False)).after == text
    # Changed since: what is ours goes, with the arrays that were made for it, and nothing of anybody else.
    changed = change.after.replace('"opus"', '"sonnet"')
    left = change_plan.disconnect(wanted, changed, change.record(False)).after
    assert left is not None
    assert change_plan.read(left, "json") == {
        "hooks": {"Stop": theirs["hooks"]["Stop"], "SessionStart": []},
        "model": "sonnet",
    }


def test_connecting_from_another_place_replaces_what_we_wrote_and_still_leads_back_to_the_beginning() -> None:
    text = '{\n  "a": 1\n}\n'
    first = change_plan.connect(file("json"), text, None)
    moved = file("json", [Value(("mcpServers", "holdfast"), {"command": "/new/hold", "args": ["mcp"]})])
    second = change_plan.connect(moved, first.after, first.record(False))
    assert second.after is not None
    assert change_plan.read(second.after, "json")["mcpServers"]["holdfast"]["command"] == "/new/hold"
    assert change_plan.disconnect(moved, second.after, second.record(False)).after == text


@pytest.mark.parametrize(
    ("form", "text", "says"),
    [
        ("json", "{", "line 1"),
        ("json", '{"a": 1,}', "another value"),
        ("json", "{\n  // c\n}", "line 2"),
        ("json", "[]", "it is not a JSON object"),
        ("json", '{"mcpServers": []}', "mcpServers"),
        ("jsonc", '{"a": /* ', "a value"),
        ("json", '{"a": tru}', "a value"),
        ("json", '{"a": 1} x', "nothing more"),
        ("json", '{"a": "\n"}', "a value"),
        ("toml", "a = ", "cannot be read"),
        ("toml", 'mcp_servers = { x = { command = "y" } }\n', "by hand"),
        ("json", "[" * 5000, "levels"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(form: str, text: str, says: str) -> None:
    with pytest.raises(HoldfastError) as e:
        change_plan.connect(file(form), text, None)
    assert says in e.value.line()
    assert "\n" not in e.value.line()


def test_a_table_that_only_looks_like_ours_inside_a_string_is_not_touched() -> None:
    text = "note = '''\n[mcp_servers.holdfast]\ncommand = \"x\"\n'''\n"
    change = change_plan.connect(file("toml"), text, None)
    assert change.after is not None
    assert change.after.startswith(text)
    assert change_plan.disconnect(file("toml"), change.after, change.record(False)).after == text
    with pytest.raises(HoldfastError) as e:
        change_plan.disconnect(file("toml"), change.after + "# changed\n", change.record(False))
    assert "by hand" in e.value.line()


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=examples(150), deadline=None)
@given(
    st.dictionaries(st.text(max_size=5), values, max_size=4),
    st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    st.sampled_from([True, False]),
)
def test_any_json_comes_back_to_the_byte(data: dict[str, Any], indent: Any, escaped: bool) -> None:
    if not isinstance(data.get("mcpServers", {}), dict):
        return
    text = json.dumps(data, indent=indent, ensure_ascii=escaped)
    assert scan(text, False).value == data
    change = change_plan.connect(file("json"), text, None)
    assert change.after is not None
    assert json.loads(change.after) == {**data, "mcpServers": {**data.get("mcpServers", {}), "holdfast": ENTRY}}
    assert change_plan.disconnect(file("json"), change.after, change.record(False)).after == text
    left = json_edit.apply(change.after, json_edit.take(change.after, ("mcpServers", "holdfast"), None, False))
    assert json.loads(left) == {**data, "mcpServers": data.get("mcpServers", {})}


@settings(max_examples=examples(100), deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_path_is_a_toml_string_that_reads_back(path: str) -> None:
    text = json_edit.apply("a = 1\n", toml_edit.put("a = 1\n", ("mcp_servers", "holdfast"), {"command": path}))
    assert tomllib.loads(text)["mcp_servers"]["holdfast"]["command"] == path


def test_undoing_a_text_that_is_another_one_says_so() -> None:
    with pytest.raises(BrokenError):
        json_edit.undo("abc", [(0, "", "x")])


@pytest.mark.parametrize("record", [None, {"after": "", "splices": [], "paths": [], "made": False}])
@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_an_entry_that_only_has_our_name_is_not_ours_to_take(client: str, record: dict[str, Any] | None) -> None:
    places = agent_programs.Places({}, "/home/u", "/p")
    here, there = (
        agent_programs.files(client, "user", ["/opt/hold"], {"HOLDFAST_HOME": h}, places)[0] for h in ("/a", "/b")
    )
    own = {
        "cursor": '{"mcpServers": {"holdfast": {"command": "mine", "args": ["mcp"]}}}\n',
        "codex": '[mcp_servers.holdfast]\ncommand = "mine"\nargs = ["mcp"]\n',
    }[client]
    assert change_plan.disconnect(here, own, record).after == own, "somebody's own"
    other = change_plan.connect(there, None, None).after
    assert change_plan.disconnect(here, other, record).after == other, "another home's"
    taken = change_plan.disconnect(there, other, record).after
    assert "hold" not in str(taken)


def test_the_hooks_of_another_home_stay_when_this_one_leaves() -> None:
    a, b = (
        [
            Value(("hooks", e), g, append=True)
            for e, g in agent_programs.claude_hooks(["/opt/hold"], {"HOLDFAST_HOME": h})
        ]
        for h in ("/a", "/b")
    )
    other = change_plan.connect(file("json", b), "{}\n", None).after
    assert change_plan.disconnect(file("json", a), other, None).after == other
    assert "hold" not in str(change_plan.disconnect(file("json", b), other, None).after)


def _settings(*events: str, home: str = "", program: str = "hold") -> str:
    command = (f"env HOLDFAST_HOME={home} " if home else "") + f"/opt/bin/{program} hook claude"
    return json.dumps({"hooks": {e: [{"hooks": [{"type": "command", "command": command}]}] for e in events}})


def test_hooks_of_an_older_version_are_told_by_what_they_lack() -> None:
    every = [event for event, _, _ in agent_programs.HOOKS]
    older = [e for e in every if not e.startswith("PostToolUse")]
    assert outdated.lacks(_settings(*older), "/h", "/h") == ["PostToolUse", "PostToolUseFailure"]
    assert outdated.lacks(_settings(*every), "/h", "/h") == []
    assert outdated.lacks(_settings(*older, home="/h"), "/h", "/usual") == ["PostToolUse", "PostToolUseFailure"]
    assert outdated.lacks(_settings(*older, home="/other"), "/h", "/usual") is None, "of another home"
    assert outdated.lacks(_settings(*older), "/h", "/usual") is None, "of the usual home"
    assert outdated.lacks(_settings(*older, program="other"), "/h", "/h") is None, "of another program"
    for text in (None, "", "{}", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": [7]}}'):
        assert outdated.lacks(text, "/h", "/h") is None
