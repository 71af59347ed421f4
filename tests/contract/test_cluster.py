"""One contract, three clusters: an imitation that drifts from the original is found here."""

import pytest

from paceline.testing.contract.cluster import PROMISES
from paceline.testing.contract.subject import OpenSubject, Promise

IDS = [promise.__name__ for promise in PROMISES]


@pytest.mark.parametrize("promise", PROMISES, ids=IDS)
async def test_cluster(open_subject: OpenSubject, promise: Promise) -> None:
    async with open_subject() as subject:
        await promise(subject)
