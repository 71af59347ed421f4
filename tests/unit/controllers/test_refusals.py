"""What the cluster rejects is remembered once, and tried again after a while or for another spec."""

from datetime import UTC, datetime, timedelta

from paceline.controllers.refusals import AGAIN, Refusals

NOW = datetime(2030, 1, 1, tzinfo=UTC)
QUOTA = "exceeded quota: small, requested: pods=1, used: pods={}, limited: pods=9"


def test_a_refusal_is_news_once_even_if_its_numbers_change():
    refusals: Refusals[str] = Refusals()

    assert refusals.add("a", QUOTA.format(9), generation=1, now=NOW)
    assert not refusals.add("a", QUOTA.format(10), generation=1, now=NOW + timedelta(seconds=40))
    assert refusals.add("a", "violates PodSecurity", generation=1, now=NOW)


def test_the_first_message_stays_while_the_time_to_try_again_moves_on():
    refusals: Refusals[str] = Refusals()
    refusals.add("a", QUOTA.format(9), generation=1, now=NOW)
    refusals.add("a", QUOTA.format(10), generation=1, now=NOW + AGAIN)
    refusal = refusals.of("a", 1)

    assert refusal is not None
    assert (refusal.message, refusal.until) == (QUOTA.format(9), NOW + 2 * AGAIN)


def test_another_spec_is_tried_at_once():
    refusals: Refusals[str] = Refusals()
    refusals.add("a", "no", generation=1, now=NOW)

    assert refusals.of("a", 2) is None
    assert refusals.add("a", "no", generation=2, now=NOW)
    refusals.forget("a")
    assert refusals.of("a", 2) is None
