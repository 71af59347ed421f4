"""The external address, as it is typed."""

import pytest

from paceline.cluster.config.external_address import is_from_here_only, own_address
from paceline.errors import Invalid


def test_an_address_of_this_machine_is_taken():
    assert own_address("127.0.0.9") == "127.0.0.9"
    assert is_from_here_only("127.0.0.9")
    assert not is_from_here_only("192.0.2.1")


WRONG = {
    "localhost": "such as 192.168.1.5",
    "0.0.0.0": "stands for all",
    "::": "stands for all",
    "192.0.2.1": "this machine has no such address",
}


@pytest.mark.parametrize(("text", "hint"), WRONG.items())
def test_an_address_is_refused(text, hint):
    with pytest.raises(Invalid, match=hint):
        own_address(text)
