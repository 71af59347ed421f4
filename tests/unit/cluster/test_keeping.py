"""How much of the past is kept, as people write it, and what is said when it makes no sense."""

from datetime import timedelta

import pytest

from paceline.cluster.config import configured_events, configured_records, configured_retention
from paceline.errors import Invalid
from paceline.model.retention import EventPolicy
from paceline.node.logs.archive import RetentionPolicy
from paceline.plan.job_records import RecordPolicy
from paceline.settings import Settings


def policy(home, text):
    (home / "settings.yaml").write_text(text)
    return configured_retention(Settings(home=home))


def test_what_is_not_written_is_as_shipped(tmp_path):
    assert configured_retention(Settings(home=tmp_path)) == RetentionPolicy()
    assert policy(tmp_path, "history: {pods: 5}") == RetentionPolicy(pods=5)


def test_logs_records_and_events_have_limits_of_their_own(tmp_path):
    retention = policy(tmp_path, "history: {age: 1h, jobs: 5, jobAge: 2d, events: 100, eventAge: 3h}")
    settings = Settings(home=tmp_path)

    assert retention == RetentionPolicy(age=timedelta(hours=1))
    assert configured_records(settings) == RecordPolicy(jobs=5, age=timedelta(days=2))
    assert configured_events(settings) == EventPolicy(events=100, age=timedelta(hours=3))


def test_all_of_it_can_be_written(tmp_path):
    found = policy(tmp_path, "history: {age: 12h, size: 1.5Gi, pods: 0}")

    assert found == RetentionPolicy(age=timedelta(hours=12), bytes=1536 * 1024**2, pods=0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("history: [1]", "write how much is kept"),
        ("history: {days: 3}", "history.days: 3 is not allowed; is not a setting"),
        ("history: {age: soon}", "history.age: 'soon' is not allowed; write a duration"),
        ("history: {size: -1}", "history.size: -1 is not allowed; write a size"),
        ("history: {size: much}", "write a size"),
        ("history: {pods: true}", "write a whole number"),
        ("history: {eventAge: 7}", "history.eventAge: 7 is not allowed; write a duration"),
        ("history: {pods: -1}", "write a whole number"),
    ],
)
def test_what_makes_no_sense_is_said_with_its_place(tmp_path, text, said):
    with pytest.raises(Invalid) as caught:
        policy(tmp_path, text)

    assert said in str(caught.value)
    assert str(tmp_path / "settings.yaml") in str(caught.value)
