"""The external address, as it is typed."""

import pytest

from paceline.cluster.config import external_address, is_loopback
from paceline.errors import Invalid


def test_an_address_of_this_machine_is_taken():
    assert external_address("127.0.0.9") == "127.0.0.9"
    assert is_loopback("127.0.0.9")
    assert not is_loopback("192.0.2.1")


WRONG = {
    "localhost": "such as 192.168.1.5",
    "0.0.0.0": "specify one address",
    "::": "specify one address",
    "192.0.2.1": "this machine has no such address",
}


@pytest.mark.parametrize(("text", "hint"), WRONG.items())
def test_an_address_is_refused(text, hint):
    with pytest.raises(Invalid, match=hint):
        external_address(text)
