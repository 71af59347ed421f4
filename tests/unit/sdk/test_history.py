"""Logs of what is gone, where not everybody may ask the nodes that keep them."""

import pytest
from tests.unit.sdk.conftest import JOBS, NODES

from paceline.cli.commands.jobs.logs import LogRequest, chunks
from paceline.errors import NotFound
from paceline.sdk.follow import ReplicaSelector
from paceline.sdk.logs.sources import LogOptions
from paceline.sdk.results import results_of

CURRENT = LogRequest(choice=ReplicaSelector(), ask=LogOptions(is_followed=False))
ASKED = {
    "its log": lambda session: list(chunks(session, "digist", CURRENT)),
    "its results": lambda s: results_of(s, "digist"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_job_that_is_not_there_is_said_not_to_be_there(ask, stage, session, job_object):
    stage.put(JOBS, job_object("digits"))
    stage.forbidden.add(NODES)

    with pytest.raises(NotFound, match=r"no job named 'digist' .*did you mean digits"):
        ask(session)
