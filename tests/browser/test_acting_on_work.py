"""Work acted on in the page: steps settled, tasks moved, a refused verification shown, two checkpoints compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support import browser as chrome
from tests.support.home import HomeForTests
from tests.support.tasks import ok

expect.set_options(timeout=chrome.PATIENCE_MS)


@pytest.fixture
def shop(hold: HomeForTests, tmp_path: Path) -> Path:
    """A project with one task, whose check passes when a file is there."""
    folder = tmp_path / "shop"
    folder.mkdir()
    todo = hold.host.work.tasks
    todo.init("shop", phases=["build"], root=str(folder))
    contract = {"goal": "a file is there", "verification": ["test -e made || { echo 'no file yet' >&2; exit 7; }"]}
    todo.add("Make it", id="1.1", contract=contract, project="shop")
    return folder


def _task(page: Page, url: str) -> None:
    page.goto(f"{url}/work/shop/tasks/1.1")
    page.get_by_role("heading", name="1.1 Make it").wait_for()


def _act(page: Page, name: str, why: str = "") -> None:
    """Press one of the task's buttons, and say why."""
    page.get_by_role("main").get_by_role("button", name=name, exact=True).click()
    dialog = page.get_by_role("dialog", name=name)
    dialog.get_by_label("Why").or_(dialog.get_by_label("Answer")).fill(why)
    dialog.get_by_role("button", name=name, exact=True).click()
    expect(dialog).to_have_count(0)


def _status(page: Page, status: str) -> None:
    expect(page.get_by_role("main").locator("header .chip")).to_have_text(status)


def test_done_is_refused_by_a_failing_verification_and_the_page_shows_why(
    hold: HomeForTests, url: str, desk: Page, shop: Path
) -> None:
    _task(desk, url)
    _act(desk, "Start", "to begin")
    _status(desk, "active")
    _act(desk, "Verify and finish")
    expect(desk.get_by_role("alert").filter(has_text="is not done")).to_be_visible()
    attempts = desk.get_by_role("region", name="Attempts")
    expect(attempts).to_contain_text("failed")
    expect(attempts).to_contain_text("exit 7")
    expect(attempts.get_by_label("The end of its output")).to_have_text("no file yet")
    _status(desk, "active")
    (shop / "made").touch()
    _act(desk, "Verify and finish")
    _status(desk, "done")
    assert hold.host.work.call("task_show", task="shop/1.1")["status"] == "done"


def test_a_task_is_blocked_with_a_question_answered_paused_cancelled_and_tried_again(
    hold: HomeForTests, url: str, desk: Page, shop: Path
) -> None:
    _task(desk, url)
    desk.get_by_role("button", name="Block", exact=True).click()
    dialog = desk.get_by_role("dialog", name="Block")
    dialog.get_by_label("Question").fill("Which file?")
    dialog.get_by_label("Why").fill("two are meant")
    dialog.get_by_role("button", name="Block", exact=True).click()
    _status(desk, "blocked")
    why = desk.get_by_role("region", name="Why it is blocked")
    expect(why).to_contain_text("Which file?")
    expect(why).to_contain_text("two are meant")
    _act(desk, "Unblock", "the one called made")
    _status(desk, "ready")
    for name, then in (("Pause", "paused"), ("Start", "active"), ("Cancel", "cancelled"), ("Retry", "ready")):
        _act(desk, name, f"because of {name}")
        _status(desk, then)
    history = desk.get_by_role("region", name="History")
    for said in ("the one called made", "because of Pause", "because of Cancel", "because of Retry"):
        expect(history).to_contain_text(said)
    events = [e["event"] for e in hold.host.work.call("task_show", task="shop/1.1")["events"]]
    assert events[-1] == "retry"


def test_a_task_that_can_never_begin_and_one_that_is_held_back_say_so(
    hold: HomeForTests, url: str, desk: Page, shop: Path
) -> None:
    todo = hold.host.work.tasks
    todo.add("After it", id="1.2", contract={"goal": "more"}, project="shop", after=["1.1"])
    todo.add("At work", id="1.3", contract={"goal": "more", "scope": ["src/**"]}, project="shop")
    todo.add("Beside it", id="1.4", contract={"goal": "more", "scope": ["src/api/*"]}, project="shop")
    todo.start("1.3", project="shop", worker="elsewhere", lease=3600)
    ok(hold, "task", "cancel", "shop/1.1")
    desk.goto(f"{url}/work/shop")
    never = desk.get_by_role("listitem").filter(has_text="After it")
    expect(never).to_contain_text("waits for cancelled 1.1 and can never begin")
    desk.goto(f"{url}/work/shop/tasks/1.2")
    why = desk.get_by_role("region", name="Why it can never begin")
    expect(why).to_contain_text("Waits for cancelled 1.1")
    expect(why).to_contain_text("hold task edit shop/1.2 --no-after")
    desk.goto(f"{url}/work/shop/tasks/1.4")
    expect(desk.get_by_role("region", name="Why it is held back")).to_contain_text(
        "Its scope src/api/* overlaps src/** of 1.3, under way."
    )


def _doubtful(hold: HomeForTests, key: str, effect: str) -> str:
    """A run of the task with a step that nobody saw the end of."""
    todo = hold.host.work.tasks
    run = str(todo.start("1.1", project="shop")["run"])
    ok(hold, "step", "begin", run, key, "--effect", effect, "--action", "mail the reviewers")
    ok(hold, "step", "fail", run, key, "--error", "connection lost", "--unknown")
    return run


def test_an_unsafe_step_is_settled_with_evidence_and_not_without(
    hold: HomeForTests, url: str, desk: Page, shop: Path
) -> None:
    run = _doubtful(hold, "mail:reviewers", "unsafe")
    _task(desk, url)
    doubts = desk.get_by_role("region", name="Steps in doubt")
    expect(doubts).to_contain_text("mail the reviewers")
    doubts.get_by_role("button", name="Settle").click()
    dialog = desk.get_by_role("dialog", name="Settle mail:reviewers")
    expect(dialog).to_contain_text("connection lost")
    dialog.get_by_role("button", name="Settle").click()
    expect(dialog).to_be_visible()  # the field is needed: nothing was sent
    assert hold.host.work.status(run)["steps"]["in_doubt"] == 1
    dialog.get_by_label("Evidence").fill("   ")  # and the host's own word where the page is fooled
    dialog.get_by_role("button", name="Settle").click()
    expect(dialog.get_by_role("alert")).to_contain_text("evidence")
    dialog.get_by_label("Evidence").fill("it is in the sent folder")
    dialog.get_by_label("It happened").check()
    dialog.get_by_role("button", name="Settle").click()
    expect(doubts).to_have_count(0)
    assert hold.host.work.status(run)["steps"] == {"done": 1, "open": 0, "failed": 0, "in_doubt": 0}
    settled = [e["body"] for e in hold.host.work.call("history", run=run)["entries"] if e["kind"] == "settlement"]
    assert [(s["outcome"], s["evidence"]) for s in settled] == [("done", "it is in the sent folder")]


def test_a_step_that_may_be_repeated_is_settled_on_the_runs_page_without_evidence(
    hold: HomeForTests, url: str, desk: Page, shop: Path
) -> None:
    run = _doubtful(hold, "look:bank", "verifiable")
    desk.goto(f"{url}/runs/{run}")
    desk.get_by_role("button", name="Settle").click()
    dialog = desk.get_by_role("dialog", name="Settle look:bank")
    dialog.get_by_label("It did not").check()
    dialog.get_by_role("button", name="Settle").click()
    expect(desk.get_by_role("region", name="Steps in doubt")).to_have_count(0)
    assert hold.host.work.status(run)["steps"]["in_doubt"] == 0


def test_two_checkpoints_are_chosen_and_compared(hold: HomeForTests, url: str, desk: Page, shop: Path) -> None:
    run = str(hold.host.work.tasks.start("1.1", project="shop")["run"])
    for label, colour in (("first", "red"), ("second", "green"), ("third", "blue")):
        ok(hold, "checkpoint", "save", run, "--label", label, "--set", f'context={{"colour": "{colour}"}}')
    desk.goto(f"{url}/runs/{run}")
    desk.get_by_role("tab", name="Checkpoints").click()
    panel = desk.get_by_role("tabpanel")
    change = panel.locator(".change").filter(has=desk.get_by_role("heading", name="context.colour"))
    expect(change.locator(".old")).to_contain_text("green")  # the latest two, without being asked
    expect(change.locator(".new")).to_contain_text("blue")
    panel.get_by_label("From").select_option(index=_at(panel.get_by_label("From").all_inner_texts()[0], "first"))
    expect(change.locator(".old")).to_contain_text("red")
    panel.get_by_label("To").select_option(index=_at(panel.get_by_label("To").all_inner_texts()[0], "second"))
    expect(change.locator(".new")).to_contain_text("green")


def _at(options: str, label: str) -> int:
    return next(n for n, text in enumerate(options.split("\n")) if label in text)
