"""Amounts as Kubernetes writes them."""

from decimal import Decimal

import pytest

from paceline.apimachinery.quantity import amounts, is_quantity, milli, parse, whole

AMOUNTS = {
    "0": 0,
    "2": 2,
    "2.5": Decimal("2.5"),
    ".5": Decimal("0.5"),
    "1.": 1,
    "-1": -1,
    "+1": 1,
    "500m": Decimal("0.5"),
    "1u": Decimal("1e-6"),
    "1n": Decimal("1e-9"),
    "1k": 1000,
    "1M": 10**6,
    "1G": 10**9,
    "1T": 10**12,
    "1P": 10**15,
    "1E": 10**18,
    "1Ki": 1024,
    "1.5Gi": 1536 * 1024**2,
    "1Ei": 2**60,
    "2e3": 2000,
    "2E3": 2000,
    "2e-3": Decimal("0.002"),
}


@pytest.mark.parametrize(("text", "value"), AMOUNTS.items(), ids=AMOUNTS)
def test_an_amount_is_read(text, value):
    assert parse(text) == value


@pytest.mark.parametrize("number", [0, 2, 0.5, 1e3, -1])
def test_a_plain_number_is_an_amount(number):
    assert parse(number) == Decimal(str(number))


BAD = [
    "",
    " ",
    "x",
    "1x",
    "1 Gi",
    "1gi",
    "1KI",
    "1ki",
    "--1",
    "1.2.3",
    "1e",
    "1e309Ki",
    "1e999",
    "9" * 40,
    "1" * 10_000,
]
BAD += ["16Ei", "0x10", "1_000", "∞", "NaN", "inf", "1Gi\n", "٣"]


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text)[:20])
def test_what_is_no_amount_is_refused(text):
    assert not is_quantity(text)
    with pytest.raises(ValueError, match=r"must be a number|must be at most"):
        parse(text)


def test_amounts_are_rounded_up_so_that_nobody_gets_less():
    assert (milli("1500m"), milli("0.0001"), milli(2)) == (1500, 1, 2000)
    assert (whole("1.1"), whole("1Ki"), whole("1m")) == (2, 1024, 1)


def test_requests_are_numbers_and_malformed_ones_are_left_out():
    requests = {"cpu": "250m", "memory": "1Ki", "nvidia.com/gpu": "2", "example.com/fpga": "many"}
    assert amounts(requests) == {"cpu": 0.25, "memory": 1024.0, "nvidia.com/gpu": 2.0}
    assert amounts(None) == {}
