"""The controls as a state machine: who may have them, what ends a hold, and that epochs only go up."""

from __future__ import annotations

import random
from functools import partial

import pytest

from holdfast.model.limits import HOLDS_MAX
from holdfast.model.sessions.controls import ACTION, TAKEN, Actor, Controls, Refused
from holdfast.model.sessions.hold_end import BACK, ENDS, SENDING, STAYS, TYPED, WORK, Hold, Times

ADA, BOB = Actor("op_ada", "human", "ada"), Actor("op_bob", "human", "bob")
BOT, CRON = Actor("op_bot", "agent", "bot"), Actor("op_cron", "service", "cron")
WIZARD = Actor("op_wizard", "wizard", "merlin")


def held_by(actor: Actor, hold: str = "channel-1", now: float = 0.0) -> Controls:
    controls = Controls(7, Times(lease_s=100, grace_s=30, takeover_s=1000))
    controls.grant(actor, hold, Hold(TYPED, "term"), now, 43384.0)
    return controls


def taken_by(actor: Actor, source: Actor | None = BOT, client: str = "term", now: float = 0.0) -> Controls:
    controls = Controls(7, Times(lease_s=100, grace_s=30, takeover_s=1000))
    controls.grant(actor, TAKEN, Hold(TAKEN, client), now, 43384.0)
    controls.owe(source, 0)
    if client:
        controls.join("channel-1", Hold(TYPED, client), now)
    return controls


def test_free_controls_are_for_the_first_who_comes() -> None:
    controls = Controls(7)
    assert controls.needs_grant(BOT)
    controls.grant(BOT, TAKEN, Hold(TAKEN), 0, 0)
    assert controls.epoch == 8
    controls.check(BOT, 8)


@pytest.mark.parametrize(
    ("holder", "taker", "force", "allowed"),
    [
        (BOT, ADA, True, True),
        (CRON, ADA, True, True),
        (ADA, BOB, True, False),
        (BOT, CRON, True, True),
        (BOT, ADA, False, False),
        (ADA, BOB, False, False),
        (BOT, CRON, False, False),
        (ADA, BOT, True, False),
        (ADA, CRON, True, False),
        (ADA, BOT, False, False),
        (BOT, WIZARD, True, False),
        (WIZARD, BOT, True, False),
        (WIZARD, ADA, True, True),
    ],
)
def test_rank_and_force_decide_who_takes_from_whom(holder: Actor, taker: Actor, force: bool, allowed: bool) -> None:
    controls = held_by(holder)
    if allowed:
        assert controls.needs_grant(taker, force)
        return
    with pytest.raises(Refused) as refused:
        controls.needs_grant(taker, force)
    assert refused.value.code == "conflict"


def test_a_refusal_says_who_holds_them_and_since_when() -> None:
    with pytest.raises(Refused, match=r"ada \(human\) holds the controls since 12:03:04 UTC \(epoch 8\)"):
        held_by(ADA).check(BOT)


def test_an_old_epoch_is_refused_even_to_the_holder() -> None:
    controls = held_by(ADA)
    with pytest.raises(Refused) as refused:
        controls.check(ADA, 7)
    assert refused.value.code == "stale_epoch"
    assert "ada (human)" in refused.value.message


def test_a_human_takes_from_a_human_who_was_asked_only_by_insisting() -> None:
    with pytest.raises(Refused) as refused:
        held_by(ADA).needs_grant(BOB, force=True)
    assert "--force" in refused.value.hint
    assert held_by(ADA).needs_grant(BOB, force=True, insist=True)
    with pytest.raises(Refused):
        held_by(ADA).needs_grant(BOT, force=True, insist=True)


def test_a_humans_hold_has_no_time_and_an_agents_is_a_lease_from_its_last_act() -> None:
    assert held_by(ADA).due() == 0
    controls = held_by(BOT, now=1000)
    assert controls.due() == 1100
    controls.join("channel-1", Hold(TYPED, "term"), 1050)
    assert controls.due() == 1150
    assert not controls.lapse(1149.9)
    assert controls.lapse(1150)
    assert controls.holder is None
    assert controls.due() == 0


def test_an_agent_whose_process_is_watched_has_no_lease_and_ends_with_it() -> None:
    controls = held_by(BOT)
    controls.join("channel-1", Hold(TYPED, "term", process=42), 0)
    assert controls.due() == 0
    assert not controls.lost("channel-1", 5)
    assert not controls.gone(41)
    assert controls.held_by(BOT)
    assert controls.gone(42)
    assert controls.holder is None


def test_a_command_under_way_keeps_the_controls_when_the_lease_is_over() -> None:
    controls = held_by(BOT, now=0)
    controls.join("exe_1", Hold(WORK), 0)
    assert not controls.lapse(1000)
    assert controls.held_by(BOT)
    assert controls.drop("exe_1")
    assert controls.holder is None


def test_a_human_whose_line_is_lost_keeps_them_for_the_grace_time() -> None:
    controls = held_by(ADA)
    assert not controls.lost("channel-1", 500)
    assert controls.held_by(ADA)
    assert controls.due() == 530
    assert controls.lapse(530)
    assert controls.holder is None


def test_a_human_who_comes_back_in_time_keeps_them() -> None:
    controls = held_by(ADA)
    controls.lost("channel-1", 500)
    controls.join("channel-2", Hold(TYPED, "term"), 510)
    assert list(controls.holds) == ["channel-2"]
    assert not controls.lapse(1000)
    assert controls.held_by(ADA)


def test_one_act_from_elsewhere_does_not_end_the_grace_time() -> None:
    controls = held_by(ADA)
    controls.lost("channel-1", 500)
    controls.join(ACTION, Hold(WORK), 510)
    assert not controls.drop(ACTION)
    assert controls.due() == 530


def test_an_agents_lost_line_is_not_its_end() -> None:
    controls = held_by(BOT)
    assert not controls.lost("channel-1", 50)
    assert controls.due() == 100
    assert controls.lapse(100)


def test_a_client_that_leaves_frees_what_it_typed_itself_into() -> None:
    for who in (ADA, BOT):
        controls = held_by(who)
        assert controls.leave("channel-1", "term", 5) == ENDS
        assert controls.holder is None


def test_a_takeover_stays_when_its_line_is_lost_and_has_no_end_while_one_is_there() -> None:
    controls = taken_by(ADA)
    assert controls.due() == 0
    assert not controls.lost("channel-1", 500)
    assert controls.due() == 530  # then the person is warned
    assert not controls.away(529, 0)
    assert controls.away(530, 90_000)
    assert controls.ends_at == 90_000 + 970
    assert not controls.away(600, 0)  # once
    assert controls.due() == 1500
    assert not controls.lapse(1499)
    assert controls.held_by(ADA)
    controls.join("channel-2", Hold(TYPED, "term"), 1499)
    assert (controls.due(), controls.ends_at) == (0, 0)
    controls.lost("channel-2", 2000)
    assert controls.lapse(3000)


def test_a_takeover_by_a_command_has_no_line_and_lasts_until_it_is_released() -> None:
    controls = taken_by(ADA, client="")
    assert controls.away(30, 0)
    controls.join("channel-5", Hold(TYPED, "other"), 40)
    assert controls.leave("channel-5", "other", 50) == STAYS
    assert controls.held_by(ADA)


def test_a_client_that_took_them_and_leaves_gives_them_back_unless_it_keeps_them() -> None:
    assert taken_by(ADA).leave("channel-1", "term", 5) == BACK
    assert taken_by(ADA, source=None).leave("channel-1", "term", 5) == ENDS
    kept = taken_by(ADA)
    assert kept.leave("channel-1", "term", 5, keep=True) == STAYS
    assert kept.leave("channel-1", "term", 6) == STAYS
    assert kept.held_by(ADA)


def test_a_takeover_moves_with_the_person_to_the_window_they_type_in() -> None:
    controls = taken_by(ADA)
    controls.join("channel-2", Hold(TYPED, "page"), 5)
    assert controls.leave("channel-1", "term", 6) == STAYS
    assert controls.leave("channel-2", "page", 7) == BACK


def test_nothing_goes_back_to_a_process_that_ended() -> None:
    controls = taken_by(ADA)
    controls.owe(BOT, 42)
    assert not controls.gone(42)
    assert controls.leave("channel-1", "term", 5) == ENDS


def test_a_text_in_pieces_survives_its_host_for_the_grace_time() -> None:
    controls = Controls(0, Times(grace_s=30))
    controls.grant(ADA, "snd_1", Hold(SENDING, "channel-host"), 0, 0)
    assert not controls.lost("snd_1", 10)
    assert controls.due() == 40
    controls.join("snd_1", Hold(SENDING, "channel-next"), 20)
    assert controls.due() == 0


def test_the_line_of_one_who_does_not_hold_them_changes_nothing() -> None:
    controls = held_by(ADA)
    assert not controls.lost("channel-9", 500)
    assert not controls.drop("channel-9")
    assert list(controls.holds) == ["channel-1"]


def test_holds_are_bounded() -> None:
    controls = held_by(ADA)
    for n in range(HOLDS_MAX - 1):
        controls.join(f"exe_{n}", Hold(WORK), 0)
    with pytest.raises(Refused) as refused:
        controls.join("exe_more", Hold(WORK), 0)
    assert refused.value.code == "busy"


@pytest.mark.parametrize("seed", range(20))
def test_no_sequence_of_events_takes_an_epoch_back_or_lets_an_agent_preempt_a_human(seed: int) -> None:
    rng = random.Random(seed)
    controls, now = Controls(0, Times(lease_s=5, grace_s=5, takeover_s=20)), 0.0
    for _ in range(2000):
        now += rng.random()
        before, epoch, who = controls.holder, controls.epoch, rng.choice((ADA, BOB, BOT, CRON))
        channel, process = rng.randrange(3), rng.choice((0, 0, 41, 42))
        name, hold = rng.choice(
            (
                (f"channel-{channel}", Hold(TYPED, f"client-{channel}", process)),
                (TAKEN, Hold(TAKEN, rng.choice(("", f"client-{channel}")), process)),
                ("exe_1", Hold(WORK, "", process)),
            )
        )
        event = rng.randrange(8)
        try:
            if event <= 1 and controls.needs_grant(who, force=event == 1, insist=rng.random() < 0.3):
                controls.grant(who, name, hold, now, now)
                controls.owe(before, 0)
            elif event <= 1:
                controls.join(name, hold, now)
        except Refused:
            assert controls.holder is before
        by_itself: dict[int, partial[bool]] = {
            2: partial(controls.drop, name),
            3: partial(controls.lost, name, now),
            4: partial(controls.lapse, now),
            5: partial(controls.gone, process or 41),
            6: partial(controls.away, now, now),
        }
        if event in by_itself:
            by_itself[event]()
        elif event == 7:
            if controls.leave(f"channel-{channel}", f"client-{channel}", now, keep=rng.random() < 0.3) == BACK:
                assert controls.origin is not None
                controls.grant(controls.origin, TAKEN, Hold(TAKEN), now, now)  # as the keeper does, in the same breath
                assert controls.epoch == epoch + 1
                continue
        assert controls.epoch >= epoch
        assert (controls.holder is None) == (not controls.holds)
        assert controls.due() >= 0
        after = controls.holder
        if before is not None and after is not None and after is not before:
            assert controls.epoch == epoch + 1
            assert (before.kind, after.kind) not in (("human", "agent"), ("human", "service"))
