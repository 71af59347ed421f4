"""Amounts are read exactly as Kubernetes reads them."""

from decimal import Decimal

import pytest

from paceline.objects.quantity import parse, show

AMOUNTS = {
    "a number of YAML": (4, "4"),
    "a fraction of YAML": (0.5, "0.5"),
    "a number in quotes": ("4", "4"),
    "thousandths": ("500m", "0.5"),
    "a binary unit": ("2Gi", str(2 * 2**30)),
    "a decimal unit": ("2G", "2000000000"),
    "an exponent": ("1e3", "1000"),
    "a negative exponent": ("5E-1", "0.5"),
    "exa, not an exponent": ("1E", "1000000000000000000"),
    "a bare point": (".5", "0.5"),
}


@pytest.mark.parametrize(("value", "amount"), AMOUNTS.values(), ids=AMOUNTS)
def test_an_amount_is_read(value, amount):
    assert parse(value) == Decimal(amount)


@pytest.mark.parametrize("value", ["", "two", "4 Gi", "4gi", "1e999", "0x10", True, None, [], "٣"])
def test_what_is_no_amount_is_refused(value):
    with pytest.raises(ValueError, match="not an amount"):
        parse(value)


SHOWN = {
    "whole gibibytes": ("2Gi", True, "2Gi"),
    "a part of a gibibyte": ("1.5Gi", True, "1.5Gi"),
    "few bytes": ("100", True, "100"),
    "cores": ("2500m", False, "2.5"),
    "hundreds keep their zeros": ("100", False, "100"),
}


@pytest.mark.parametrize(("value", "binary", "text"), SHOWN.values(), ids=SHOWN)
def test_an_amount_is_shown_for_people(value, binary, text):
    assert show(parse(value), binary=binary) == text
