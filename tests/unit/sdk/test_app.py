"""An application is changed although its controller writes to it meanwhile, but never over somebody else's change."""

import pytest

from paceline.errors import Conflict, NotFound
from paceline.sdk.apps.app import AppRef


class Busy:
    """A cluster in which others write to the application right before we do, as often as it is told."""

    def __init__(self, *, others):
        self.others = list(others)
        self.app = {"metadata": {"generation": 1, "resourceVersion": "1"}, "spec": {"values": {}}, "status": {}}

    def get(self, *_):
        return self.app

    def create(self, *_):
        raise NotFound("this cluster has no SelfSubjectReview")

    def replace(self, _where, app):
        if self.others:
            self.others.pop(0)(self)
        if app["metadata"]["resourceVersion"] != self.app["metadata"]["resourceVersion"]:
            raise Conflict("it has changed")
        self.write(app, generation=1)
        return self.app

    def write(self, app, *, generation):
        there = self.app["metadata"]
        told = {
            "generation": there["generation"] + generation,
            "resourceVersion": str(int(there["resourceVersion"]) + 1),
        }
        self.app = {**app, "metadata": told}


def controller(cluster):
    cluster.write({**cluster.app, "status": {"phase": "Running"}}, generation=0)


def somebody(cluster):
    cluster.write({**cluster.app, "spec": {"values": {"theirs": 1}}}, generation=1)


def ref(cluster):
    return AppRef(namespace="default", name="mnist", uid="u", cluster=cluster)


def test_a_status_that_was_written_meanwhile_is_kept_beside_the_change():
    cluster = Busy(others=[controller, controller])

    ref(cluster).change({**cluster.get(), "spec": {"values": {"ours": 1}}})

    assert (cluster.app["spec"], cluster.app["status"]) == ({"values": {"ours": 1}}, {"phase": "Running"})


def test_a_change_of_somebody_else_is_not_written_over():
    cluster = Busy(others=[somebody])

    with pytest.raises(Conflict):
        ref(cluster).change({**cluster.get(), "spec": {"values": {"ours": 1}}})
    assert cluster.app["spec"] == {"values": {"theirs": 1}}


def test_it_is_not_tried_for_ever():
    cluster = Busy(others=[controller] * 50)

    with pytest.raises(Conflict, match="being changed by another client"):
        ref(cluster).change({**cluster.get(), "spec": {"values": {"ours": 1}}})
