"""Jobs that wait for room say their place in the queue; events are counted, and go when they are old."""

import json
import re
from collections.abc import Iterator

import pytest

from paceline.testing.embedded import Embedded, embedded, folder_for_cluster, wait_until
from tests.e2e.node.test_preemption import GPU, TRAINS, becomes, job, submit
from tests.e2e.support.shell_pods import make_pod, shell


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--device", f"{GPU}=2") as running:
        yield running


def place(cluster: Embedded, name: str) -> str:
    """Return the line of `paceline describe` that has the place of a job."""
    lines = cluster.paceline("describe", name).out.splitlines()
    return next((line.removeprefix("Queue:").strip() for line in lines if line.startswith("Queue:")), "")


def test_x15_a_waiting_job_says_its_place_and_what_it_lacks(cluster: Embedded) -> None:
    submit(cluster, job("first", TRAINS))
    becomes(cluster, "first", "Running")
    assert place(cluster, "first") == ""
    for name in ("second", "third"):
        submit(cluster, job(name, TRAINS))
        wait_until(f"{name} is queued", lambda name=name: place(cluster, name))

    assert place(cluster, "second") == f"1st of 2 in the queue: needs 2 {GPU}, 0 of 2 free"
    assert place(cluster, "third") == f"2nd of 2 in the queue, after second: needs 2 {GPU}"
    rows = cluster.paceline("get", "-o", "wide").out.splitlines()
    assert any(row.startswith("third") and "2nd of 2 in the queue, after second" in row for row in rows)

    assert cluster.paceline("delete", "first", "--yes").code == 0
    becomes(cluster, "second", "Running")
    wait_until("the third one is first", lambda: place(cluster, "third").startswith("1st of 1 in the queue: "))
    assert place(cluster, "second") == ""


def events(cluster: Embedded, pod: str) -> list[dict[str, object]]:
    shown = cluster.kubectl("get", "events", "--field-selector", f"involvedObject.name={pod}", "-o", "json")
    items: list[dict[str, object]] = json.loads(shown.out)["items"]
    return items


def is_repeated(event: dict[str, object]) -> bool:
    return int(str(event.get("count"))) > 1 and str(event["firstTimestamp"]) < str(event["lastTimestamp"])


def test_events_are_counted_and_removed_when_they_are_old() -> None:
    with folder_for_cluster() as cluster:
        (cluster.home / "settings.yaml").write_text("history: {eventAge: 20s}\n")
        assert cluster.paceline("up", "-d").code == 0
        make_pod(cluster, "again", shell("exit 1"), restartPolicy="Always")
        # Timestamps of events have whole seconds: the first two starts may fall into one.
        wait_until(
            "it has started again, in another second",
            lambda: [event for event in events(cluster, "again") if is_repeated(event)],
        )

        assert re.search(r"\(x\d+ over [\dms]+\)", cluster.kubectl("describe", "pod", "again").out)
        assert cluster.kubectl("delete", "pod", "again", "--now").code == 0
        wait_until("nothing is told of it any more", lambda: not events(cluster, "again"), 180)
