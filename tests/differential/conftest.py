"""The two servers, started once for all scenarios."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from paceline.testing.api_diff import Asker, Step, differences
from tests.kubes import assets_or_skip

AT_ONCE = 8
# Larger than all annotations of an object may be together.
BIG = "a" * 300_000


class Both:
    """The real server and ours, asked the same at the same time."""

    def __init__(self, places):
        self._places = places

    def differ(self, name: str, steps: tuple[Step, ...]) -> Iterator[tuple[Step, list[str]]]:
        """Send steps in their order, in a namespace of their own, and give what differs for each."""
        namespace = f"d-{name}"
        askers = [Asker(place, {"ns": namespace, "big": BIG}) for place in self._places]
        made = Step(
            case="",
            method="POST",
            path="/api/v1/namespaces",
            body=f'{{"metadata": {{"name": "{namespace}"}}}}',
            headers={"Content-Type": "application/json"},
        )
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for together in batches((made, *steps)):
                asked = [(asker, step) for step in together for asker in askers]
                said = list(pool.map(lambda pair: pair[0].ask(pair[1]), asked))
                for step, real, ours in zip(together, said[::2], said[1::2], strict=True):
                    yield step, differences(step, real, ours, variables=(askers[0].variables, askers[1].variables))


def batches(steps: tuple[Step, ...]) -> Iterator[list[Step]]:
    """Put together what may be asked at the same time: reads that no later step needs; watches take a second each."""
    batch: list[Step] = []
    for step in steps:
        is_read = step.method == "GET" and not step.keep and not step.wait
        if is_read:
            batch.append(step)
            continue
        if batch:
            yield batch
        batch = []
        yield [step]
    if batch:
        yield batch


@pytest.fixture(scope="session")
def both(tmp_path_factory) -> Iterator[Both]:
    from tests.differential.servers import ours, the_real_one

    assets = assets_or_skip()
    with the_real_one(assets) as real, ours(tmp_path_factory.mktemp("ours")) as embedded:
        yield Both((real, embedded))
