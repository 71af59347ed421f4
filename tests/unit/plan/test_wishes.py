"""A pod goes to nodes that have what it asks for and whose taints it tolerates, and says which rule keeps it away."""

import pytest

from paceline.plan.scheduling.node_affinity import Taint, taints_of, why_not_schedulable, wishes_of

LABELS = {"disk": "ssd", "gen": "7"}
GPU = Taint(key="nvidia.com/gpu", value="present")


def affinity(*expressions, fields=()):
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
        }
    }


def wants(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def said(spec, taints=()):
    return why_not_schedulable(wishes_of(spec), node="one", labels=LABELS, taints=taints)


FITS = {
    "a pod that asks for nothing": {},
    "a label that the node has": {"nodeSelector": {"disk": "ssd"}},
    "one of several values": affinity(wants("disk", "In", "nvme", "ssd")),
    "none of several values": affinity(wants("disk", "NotIn", "hdd")),
    "a label the node does not have is not among values": affinity(wants("zone", "NotIn", "a")),
    "a label that is there": affinity(wants("gen", "Exists")),
    "a label that is not there": affinity(wants("zone", "DoesNotExist")),
    "a number above": affinity(wants("gen", "Gt", "6")),
    "a number below": affinity(wants("gen", "Lt", "8")),
    "the node by its name": affinity(fields=(wants("metadata.name", "In", "one"),)),
}


@pytest.mark.parametrize("spec", FITS.values(), ids=FITS)
def test_a_pod_goes_where_its_wishes_hold(spec):
    assert said(spec) == ""


REFUSES = {
    "a label with another value": ({"nodeSelector": {"disk": "hdd"}}, "no node has the labels disk=hdd"),
    "a number that is not above": (affinity(wants("gen", "Gt", "7")), "no node matches the affinity gen Gt [7]"),
    "a label that is no number": (affinity(wants("disk", "Lt", "7")), "no node matches the affinity disk Lt [7]"),
    "another node": (
        affinity(fields=(wants("metadata.name", "In", "two"),)),
        "no node matches the affinity metadata.name In [two]",
    ),
    "two rules of which one fails": (
        affinity(wants("gen", "Exists"), wants("zone", "Exists")),
        "no node matches the affinity gen Exists [] and zone Exists []",
    ),
    "a term without rules": (
        affinity(),
        "no node matches the affinity (an empty term, which matches nothing)",
    ),
    "an operator that nobody knows": (affinity(wants("gen", "Near", "7")), "no node matches the affinity gen Near [7]"),
}


@pytest.mark.parametrize(("spec", "why"), REFUSES.values(), ids=REFUSES)
def test_a_wish_that_no_node_meets_is_named(spec, why):
    assert said(spec) == why


def tolerating(**toleration):
    return {"tolerations": [toleration]}


TOLERATED = {
    "the very taint": tolerating(key="nvidia.com/gpu", value="present", effect="NoSchedule"),
    "any value": tolerating(key="nvidia.com/gpu", operator="Exists"),
    "any effect": tolerating(key="nvidia.com/gpu", value="present"),
    "everything": tolerating(operator="Exists"),
}
NOT_TOLERATED = {
    "nothing": {},
    "another value": tolerating(key="nvidia.com/gpu", value="absent"),
    "another effect": tolerating(key="nvidia.com/gpu", operator="Exists", effect="NoExecute"),
    "another key": tolerating(key="gpu", operator="Exists"),
}


@pytest.mark.parametrize("spec", TOLERATED.values(), ids=TOLERATED)
def test_a_tolerated_taint_keeps_nobody_away(spec):
    assert said(spec, (GPU,)) == ""


@pytest.mark.parametrize("spec", NOT_TOLERATED.values(), ids=NOT_TOLERATED)
def test_a_taint_is_named_to_who_does_not_tolerate_it(spec):
    why = "every node has a taint that the pod does not tolerate: nvidia.com/gpu=present:NoSchedule"
    assert said(spec, (GPU,)) == why


def test_a_taint_that_only_discourages_is_not_counted():
    soft = {"key": "slow", "effect": "PreferNoSchedule"}
    hard = {"key": "down", "effect": "NoExecute"}

    assert taints_of({"taints": [soft, hard]}) == (Taint(key="down", effect="NoExecute"),)


def test_a_node_that_is_not_ready_is_called_so():
    assert said({}, (Taint(key="node.kubernetes.io/not-ready"),)) == "no node is ready"
