"""What all crash tests share: silence, and validators that are compiled once."""

import logging
from collections.abc import Iterator

import pytest

from paceline.api import admission
from paceline.objects.scheme import Scheme


@pytest.fixture(scope="package", autouse=True)
def quiet() -> Iterator[None]:
    """Say nothing: a simulated minute of trouble fills a page."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="package", autouse=True)
def validators() -> Iterator[None]:
    """Let every start of the server use the same validators: compiling them is a third of a short life."""
    made: dict[int, admission.Validators] = {}

    def shared(scheme: Scheme) -> admission.Validators:
        return made.setdefault(id(scheme), plain(scheme))

    plain = admission.Validators
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admission, "Validators", shared)
        yield
