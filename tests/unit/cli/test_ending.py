"""What is said when a job has failed is the cause, also when its command never began."""

from paceline.cli.output.job_outcome import stage_failure
from paceline.model.job_status import Failure


def test_a_stage_that_failed_is_named_with_its_tools_own_words():
    failure = Failure(
        pod="demo-worker-0",
        exit_code=1,
        reason="Error",
        container="paceline-install",
        message="uv could not install:\nno such package",
    )

    assert stage_failure(failure) == [
        "  demo-worker-0 failed at the stage install with exit code 1:",
        "    uv could not install:",
        "    no such package",
    ]
