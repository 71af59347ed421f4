"""Following a job: every line once, in the order of the tries, and an end that comes when everything is read."""

import threading

import pytest
from tests.unit.sdk.conftest import JOBS, PODS

from paceline.errors import NotFound
from paceline.model.job_status import Phase
from paceline.sdk import follow
from paceline.sdk.follow import FollowOptions, JobChanged, JobEnded, Logged, ReplicaSelector, Tick
from paceline.sdk.logs.archived import pod_log
from paceline.sdk.logs.sources import LogOptions, Lost

NAME = "digits-1a2b3-worker-0"


def stamped(second, *lines):
    return b"".join(b"2030-01-01T12:00:%02d.5Z %s\n" % (second, line) for line in lines)


def texts(events):
    return [event.text for event in events if isinstance(event, Logged)]


def test_a_job_is_followed_from_its_first_line_to_its_end(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object())
    stage.put(PODS, pod_object(phase="Pending"))

    def end():
        stage.put(PODS, pod_object(phase="Succeeded"))
        stage.put(JOBS, job_object(phase="Succeeded"))

    stage.logs[NAME].append([stamped(1, b"one"), stamped(2, b"two"), end])
    seen = []
    for event in session.job("digits").follow():
        if not seen:
            stage.put(PODS, pod_object())
        seen.append(event)

    assert texts(seen) == [b"one\n", b"two\n"]
    assert isinstance(seen[-1], JobEnded)
    assert seen[-1].job["status"]["phase"] == "Succeeded"
    assert [event.job["status"]["phase"] for event in seen if isinstance(event, JobChanged)] == ["Pending", "Succeeded"]


def test_a_job_that_ended_before_is_read_and_over(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Failed"))
    stage.put(PODS, pod_object(phase="Failed", code=1))
    stage.logs[NAME].append([stamped(1, b"boom")])

    seen = list(session.job("digits").follow())

    assert texts(seen) == [b"boom\n"]
    assert isinstance(seen[-1], JobEnded)


def test_a_long_log_is_read_to_its_end_however_long_ago_the_job_ended(
    stage, session, job_object, pod_object, monkeypatch
):
    monkeypatch.setattr(follow, "LAST_LINES_SECONDS", 1.0)
    stage.put(JOBS, job_object(phase="Succeeded"))
    stage.put(PODS, pod_object(phase="Succeeded"))
    never = threading.Event()
    lines = [b"line %d" % number for number in range(10)]
    stage.logs[NAME].append([step for line in lines for step in (stamped(1, line), lambda: never.wait(0.25))])

    seen = list(session.job("digits").follow())

    assert texts(seen) == [line + b"\n" for line in lines]


def test_a_log_that_stands_still_does_not_hold_up_the_end(stage, session, job_object, pod_object, monkeypatch):
    monkeypatch.setattr(follow, "LAST_LINES_SECONDS", 0.2)
    stage.put(JOBS, job_object(phase="Succeeded"))
    stage.put(PODS, pod_object(phase="Succeeded"))
    is_over = threading.Event()
    stage.logs[NAME].append([stamped(1, b"one"), lambda: is_over.wait(10)])

    seen = list(session.job("digits").follow())
    is_over.set()

    assert texts(seen) == [b"one\n"]
    assert isinstance(seen[-1], JobEnded)


def test_a_broken_log_goes_on_where_it_broke(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Running"))
    stage.put(PODS, pod_object())

    def end():
        stage.put(PODS, pod_object(phase="Succeeded"))
        stage.put(JOBS, job_object(phase="Succeeded"))

    stage.logs[NAME].append([stamped(1, b"one"), stamped(2, b"two"), stamped(2, b"half a li")[:-1]])
    stage.logs[NAME].append([stamped(2, b"two"), stamped(2, b"half a line"), end])

    seen = list(session.job("digits").follow())

    assert b"".join(texts(seen)) == b"one\ntwo\nhalf a line\n"
    first, second = stage.asked.get(), stage.asked.get()
    assert "sinceTime" not in first
    assert second["sinceTime"] == "2030-01-01T12:00:02Z"


def test_a_restarted_member_is_heard_try_by_try(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Running"))
    stage.put(PODS, pod_object(phase="Failed", code=1))
    stage.put(PODS, pod_object(attempt=1))

    def end():
        stage.put(PODS, pod_object(attempt=1, phase="Succeeded"))
        stage.put(JOBS, job_object(phase="Succeeded"))

    stage.logs[NAME].append([stamped(1, b"first try")])
    stage.logs[f"{NAME}-r1"].append([stamped(2, b"second try"), end])

    seen = list(session.job("digits").follow(FollowOptions(has_earlier_tries=True)))

    assert texts(seen) == [b"first try\n", b"second try\n"]


def test_the_next_try_is_not_heard_before_the_one_before_has_ended(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Running"))
    stage.put(PODS, pod_object())
    is_asked, early = threading.Event(), []

    def restart():
        stage.put(PODS, pod_object(attempt=1))
        early.append(is_asked.wait(0.3))
        stage.put(PODS, pod_object(phase="Failed", code=1))

    def end():
        stage.put(PODS, pod_object(attempt=1, phase="Succeeded"))
        stage.put(JOBS, job_object(phase="Succeeded"))

    stage.logs[NAME].append([stamped(1, b"first"), restart, stamped(2, b"last of first")])
    stage.logs[f"{NAME}-r1"].append([is_asked.set, stamped(3, b"second"), end])

    seen = list(session.job("digits").follow(FollowOptions(has_earlier_tries=True)))

    assert texts(seen) == [b"first\n", b"last of first\n", b"second\n"]
    assert early == [False]


def test_who_comes_late_hears_the_last_try_alone(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Succeeded"))
    stage.put(PODS, pod_object(phase="Failed", code=1))
    stage.put(PODS, pod_object(attempt=1, phase="Succeeded"))
    stage.logs[f"{NAME}-r1"].append([stamped(2, b"second try")])

    assert texts(session.job("digits").follow()) == [b"second try\n"]


def test_pods_of_an_older_job_of_the_same_name_are_not_heard(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Succeeded", uid="uid-2"))
    stage.put(PODS, pod_object(phase="Succeeded", owner="uid-1"))
    stage.logs[NAME].append([stamped(1, b"old")])

    assert texts(session.job("digits").follow()) == []


def test_who_led_leads_on_when_its_pod_is_cleaned_away(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Running"))
    stage.put(PODS, pod_object(0))
    stage.put(PODS, pod_object(1))

    def end():
        stage.drop(PODS, NAME)
        stage.put(PODS, pod_object(1, phase="Failed", code=1))
        stage.put(JOBS, job_object(phase="Failed"))

    stage.logs[NAME].append([stamped(1, b"leader"), end])
    stage.logs["digits-1a2b3-worker-1"].append([stamped(1, b"other")])

    assert texts(session.job("digits").follow()) == [b"leader\n"]


def test_all_members_are_heard_when_all_are_wanted(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Succeeded"))
    for index in (0, 1):
        stage.put(PODS, pod_object(index, phase="Succeeded"))
        stage.logs[f"digits-1a2b3-worker-{index}"].append([stamped(1, b"from %d" % index)])

    seen = list(session.job("digits").follow(FollowOptions(choice=ReplicaSelector(is_all=True))))

    assert sorted(texts(seen)) == [b"from 0\n", b"from 1\n"]
    assert {str(event.place) for event in seen if isinstance(event, Logged)} == {"worker-0", "worker-1"}


def test_a_deleted_job_ends_without_a_job(stage, session, job_object):
    stage.put(JOBS, job_object(phase="Running"))
    last = None
    for event in session.job("digits").follow():
        if last is None:
            stage.drop(JOBS, "digits")
        last = event

    assert last == JobEnded(job=None)


def test_a_watch_that_is_cut_is_taken_up_again(stage, session, job_object):
    stage.put(JOBS, job_object(phase="Running"))
    seen = []
    for event in session.job("digits").follow(FollowOptions(log=None)):
        if not seen:
            stage.hang_up(JOBS)
            stage.put(JOBS, job_object(phase="Failed"))
        seen.append(event)

    assert seen[-1].job["status"]["phase"] == "Failed"


def test_nothing_new_is_a_tick(stage, session, job_object):
    stage.put(JOBS, job_object(phase="Running"))
    events = session.job("digits").follow(FollowOptions(tick=0.01))

    assert any(isinstance(event, Tick) for event, _ in zip(events, range(50), strict=False))
    events.close()


def test_a_server_that_is_gone_is_said_once_and_waited_for(stage, session, job_object):
    stage.put(JOBS, job_object(phase="Running"))
    seen = []
    for event in session.job("digits").follow(FollowOptions(log=None)):
        if not seen:
            stage.stop()
        if isinstance(event, Lost) and not any(isinstance(each, Lost) for each in seen):
            stage.start()
            stage.put(JOBS, job_object(phase="Succeeded"))
        seen.append(event)

    assert seen[-1].job["status"]["phase"] == "Succeeded"
    # The job and its pods are watched apart, so each may say it.
    assert 1 <= sum(isinstance(event, Lost) for event in seen) <= 2


def test_wait_gives_the_status_at_the_end(stage, session, job_object):
    stage.put(JOBS, job_object(phase="Succeeded"))

    assert session.job("digits").wait().phase is Phase.SUCCEEDED


def test_wait_gives_up_when_told_to(stage, session, job_object):
    stage.put(JOBS, job_object(phase="Running"))

    with pytest.raises(TimeoutError, match="pytorchtrainingjob/digits"):
        session.job("digits").wait(timeout=0.05)


def test_wait_for_a_deleted_job_says_that_it_is_gone(stage, session, job_object):
    stage.put(JOBS, job_object(phase="Running"))
    job = session.job("digits")
    stage.drop(JOBS, "digits")

    with pytest.raises(NotFound):
        job.wait()


def test_logs_are_lines(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Succeeded"))
    stage.put(PODS, pod_object(phase="Succeeded"))
    stage.logs[NAME].append([b"one\ntw", b"o\nthree"])

    assert list(session.job("digits").logs(tail=3)) == ["one", "two", "three"]
    assert stage.asked.get() == {"tailLines": "3"}


def test_no_log_yet_says_what_the_member_waits_for(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object())
    stage.put(PODS, pod_object(phase="Pending"))

    with pytest.raises(NotFound, match="worker-0 of pytorchtrainingjob/digits has not started yet"):
        list(session.job("digits").logs())


def test_a_followed_pod_ends_with_its_process(stage, session, pod_object):
    stage.put(PODS, pod_object(phase="Succeeded"))
    stage.logs[NAME].append([stamped(1, b"one")])

    assert b"".join(pod_log(session, NAME, LogOptions())) == b"one\n"


def test_who_stops_listening_leaves_no_thread_behind(stage, session, job_object, pod_object):
    stage.put(JOBS, job_object(phase="Running"))
    stage.put(PODS, pod_object())
    blocked = threading.Event()
    stage.logs[NAME].append([stamped(1, b"one"), blocked.wait])
    events = session.job("digits").follow()
    next(event for event in events if isinstance(event, Logged))
    events.close()
    blocked.set()

    assert [thread.name for thread in threading.enumerate() if "digits" in thread.name] == []
