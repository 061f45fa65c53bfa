"""The controls as a state machine: who may have them, what ends a hold, and that epochs only go up."""

from __future__ import annotations

import random

import pytest

from holdfast.model.controls import ACTION, LEASE, TAKEN, UNTIL_DROPPED, VANISHED, Actor, Controls, Refused, lasting
from holdfast.model.limits import HOLDS_MAX

ADA, BOB = Actor("op_ada", "human", "ada"), Actor("op_bob", "human", "bob")
BOT, CRON = Actor("op_bot", "agent", "bot"), Actor("op_cron", "service", "cron")
WIZARD = Actor("op_wizard", "wizard", "merlin")


def held_by(actor: Actor, hold: str = "channel-1", now: float = 0.0) -> Controls:
    controls = Controls(7, lease_s=100, grace_s=30)
    controls.grant(actor, hold, lasting(actor), now, 43384.0)
    return controls


def test_free_controls_are_for_the_first_who_comes() -> None:
    controls = Controls(7)
    assert controls.needs_grant(BOT)
    controls.grant(BOT, TAKEN, LEASE, 0, 0)
    assert controls.epoch == 8
    controls.check(BOT, 8)


@pytest.mark.parametrize(
    ("holder", "taker", "force", "allowed"),
    [
        (BOT, ADA, True, True), (CRON, ADA, True, True), (ADA, BOB, True, True), (BOT, CRON, True, True),
        (BOT, ADA, False, False), (ADA, BOB, False, False), (BOT, CRON, False, False),
        (ADA, BOT, True, False), (ADA, CRON, True, False), (ADA, BOT, False, False),
        (BOT, WIZARD, True, False), (WIZARD, BOT, True, False), (WIZARD, ADA, True, True),
    ],
)  # fmt: skip
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


def test_a_humans_hold_has_no_time_and_an_agents_is_a_lease_from_its_last_act() -> None:
    assert held_by(ADA).due() == 0
    controls = held_by(BOT, now=1000)
    assert controls.due() == 1100
    controls.join("channel-1", LEASE, 1050)
    assert controls.due() == 1150
    assert not controls.lapse(1149.9)
    assert controls.lapse(1150)
    assert controls.holder is None
    assert controls.due() == 0


def test_a_command_under_way_keeps_the_controls_when_the_lease_is_over() -> None:
    controls = held_by(BOT, now=0)
    controls.join("exe_1", UNTIL_DROPPED, 0)
    assert not controls.lapse(1000)
    assert controls.held_by(BOT)
    assert controls.drop("exe_1")
    assert controls.holder is None


def test_a_human_whose_line_is_lost_keeps_them_for_the_grace_time() -> None:
    controls = held_by(ADA)
    assert not controls.vanish("channel-1", 500)
    assert controls.held_by(ADA)
    assert controls.due() == 530
    assert controls.lapse(530)
    assert controls.holder is None


def test_a_human_who_comes_back_in_time_keeps_them() -> None:
    controls = held_by(ADA)
    controls.vanish("channel-1", 500)
    controls.join("channel-2", UNTIL_DROPPED, 510)
    assert VANISHED not in controls.holds
    assert not controls.lapse(1000)
    assert controls.held_by(ADA)


def test_one_act_from_elsewhere_does_not_end_the_grace_time() -> None:
    controls = held_by(ADA)
    controls.vanish("channel-1", 500)
    controls.join(ACTION, UNTIL_DROPPED, 510)
    assert not controls.drop(ACTION)
    assert controls.due() == 530


def test_an_agents_lost_line_frees_them_at_once() -> None:
    controls = held_by(BOT)
    assert controls.vanish("channel-1", 500)
    assert controls.holder is None


def test_the_line_of_one_who_does_not_hold_them_changes_nothing() -> None:
    controls = held_by(ADA)
    assert not controls.vanish("channel-9", 500)
    assert not controls.drop("channel-9")
    assert controls.holds == {"channel-1": UNTIL_DROPPED}


def test_holds_are_bounded() -> None:
    controls = held_by(ADA)
    for n in range(HOLDS_MAX - 1):
        controls.join(f"exe_{n}", UNTIL_DROPPED, 0)
    with pytest.raises(Refused) as refused:
        controls.join("exe_more", UNTIL_DROPPED, 0)
    assert refused.value.code == "busy"


@pytest.mark.parametrize("seed", range(20))
def test_no_sequence_of_events_takes_an_epoch_back_or_lets_an_agent_preempt_a_human(seed: int) -> None:
    rng = random.Random(seed)
    controls, now = Controls(0, lease_s=5, grace_s=5), 0.0
    for _ in range(2000):
        now += rng.random()
        before, epoch, who = controls.holder, controls.epoch, rng.choice((ADA, BOB, BOT, CRON))
        hold = f"channel-{rng.randrange(3)}"
        event = rng.randrange(6)
        try:
            if event <= 1 and controls.needs_grant(who, force=event == 1):
                controls.grant(who, hold, lasting(who), now, now)
            elif event <= 1:
                controls.join(hold, lasting(who), now)
        except Refused:
            assert controls.holder is before
        if event == 2:
            controls.drop(hold)
        elif event == 3:
            controls.vanish(hold, now)
        elif event == 4:
            controls.lapse(now)
        assert controls.epoch >= epoch
        assert (controls.holder is None) == (not controls.holds)
        after = controls.holder
        if before is not None and after is not None and after is not before:
            assert controls.epoch == epoch + 1
            assert (before.kind, after.kind) not in (("human", "agent"), ("human", "service"))
