"""A kind with a bug, for those who read what others wrote."""

import dataclasses

import pytest

from paceline.kinds import registry


@pytest.fixture(params=[KeyError("master"), TypeError("no"), AttributeError("x"), ValueError("y")], ids=repr)
def bug(request, monkeypatch):
    """A kind that cannot expand what it found no fault in is broken; whoever wrote the job can do nothing about it."""

    def expand(_spec, _site):
        raise request.param

    kinds = [dataclasses.replace(each, expand=expand) for each in registry.KINDS if each.kind == "GenericJob"]
    monkeypatch.setattr(registry, "KINDS", tuple(kinds))
    return request.param
