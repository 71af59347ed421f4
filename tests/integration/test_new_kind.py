"""A new kind is one file with a spec and a few functions, and one line in the catalogue; then it runs."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from paceline.client.interface import Collection
from paceline.errors import Fault, Invalid
from paceline.kinds import registry
from paceline.kinds.kind_types import GROUP, VERSION, JobKind, Located
from paceline.model.gang import Gang, JobNaming, Member, ReplicaId
from paceline.testing.fixed_kinds import full_scheme
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course
from tests.integration.life import ended, phase_becomes, started

# What a new file in kinds/ would hold.


class EchoJob(msgspec.Struct, kw_only=True, rename="camel"):
    words: tuple[str, ...]


def check(job: EchoJob, path: str) -> tuple[Fault, ...]:
    return () if job.words else (Fault(f"{path}.words", [], "say at least one word"),)


def places(job: EchoJob) -> tuple[ReplicaId, ...]:
    return tuple(ReplicaId("speaker", index) for index in range(len(job.words)))


def expand(job: EchoJob, _site: JobNaming) -> Gang:
    members = tuple(
        Member(place=place, template=_template(word)) for place, word in zip(places(job), job.words, strict=True)
    )
    return Gang(members=members, leader=ReplicaId("speaker", 0), success=(places(job),), failure=())


def templates(_job: EchoJob, _path: str) -> tuple[Located, ...]:
    return ()


def _template(word: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "echo", "image": "busybox", "command": ["echo", word]}]}}


ECHO = JobKind(
    kind="EchoJob",
    plural="echojobs",
    short_names=("ej",),
    spec=EchoJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
)

JOBS = Collection(group=GROUP, version=VERSION, plural="echojobs")


@pytest.fixture
def one_more_line(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The line in the catalogue."""
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, ECHO))
    full_scheme.cache_clear()
    yield
    full_scheme.cache_clear()


def echo(*words: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "EchoJob",
        "metadata": {"name": "hello", "namespace": "default"},
        "spec": {"words": list(words)},
    }


@pytest.mark.usefixtures("one_more_line")
def test_a_new_kind_is_served_checked_and_run() -> None:
    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = lambda _intent: Course(seconds=1)
        with pytest.raises(Invalid, match=r"spec\.words.*at least one"):
            await cluster.client().create(JOBS, echo())
        await cluster.client().create(JOBS, echo("good", "morning"))
        await phase_becomes(cluster, JOBS, "hello", "Succeeded")
        assert len(cluster.sim.processes.ledger) == 2
        await ended(cluster)

    run_simulated(1, main())
