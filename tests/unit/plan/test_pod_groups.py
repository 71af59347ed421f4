"""The PodGroup of a job is that of the scheduler which its pods name."""

from dataclasses import replace

import pytest

from paceline.plan.queueing.pod_groups import PLUGINS, T9K, VOLCANO, group_kind, group_manifest, grouped
from tests.unit.plan.worlds import SITE, gang

OWNER = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "GenericJob", "name": "demo", "uid": "u"}


def crew(workers=3, *, metadata=None, **spec):
    of = gang(workers)
    template = {"metadata": metadata or {}, "spec": {**of.members[0].template["spec"], **spec}}
    return replace(of, members=tuple(replace(member, template=template) for member in of.members))


KINDS = {
    "of the default scheduler": (crew(), None),
    "of a scheduler that has none": (crew(schedulerName="my-scheduler"), None),
    "of Volcano": (crew(schedulerName="volcano"), VOLCANO),
    "of scheduler-plugins": (crew(schedulerName="scheduler-plugins-scheduler"), PLUGINS),
    "of T9k's queue": (replace(crew(), queue="gpus"), T9K),
    "that its author writes": (
        crew(schedulerName="volcano", metadata={"annotations": {"scheduling.k8s.io/group-name": "mine"}}),
        None,
    ),
}


@pytest.mark.parametrize(("of", "kind"), KINDS.values(), ids=KINDS)
def test_a_group(of, kind):
    assert group_kind(of, SITE) == kind
    assert group_kind(grouped(of, SITE), SITE) == kind, "our own mark is not the author's"


def test_volcano_reads_the_group_in_an_annotation_and_the_queue_in_the_group():
    of = crew(
        schedulerName="volcano", priorityClassName="high", metadata={"annotations": {"volcano.sh/queue-name": "q"}}
    )
    template = grouped(of, SITE).members[2].template
    assert template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "demo-12345"
    group = group_manifest(SITE, of, VOLCANO, owner=OWNER)
    assert (group["apiVersion"], group["metadata"]["name"]) == ("scheduling.volcano.sh/v1beta1", "demo-12345")
    assert group["spec"] == {"minMember": 3, "queue": "q", "priorityClassName": "high"}
    assert group["metadata"]["ownerReferences"] == [OWNER]


def test_scheduler_plugins_read_it_in_a_label():
    of = replace(crew(schedulerName="scheduler-plugins-scheduler"), least=2)
    assert grouped(of, SITE).members[0].template["metadata"]["labels"] == {
        "scheduling.x-k8s.io/pod-group": "demo-12345"
    }
    assert group_manifest(SITE, of, PLUGINS, owner=OWNER)["spec"] == {"minMember": 2}


def test_kubernetes_own_groups_are_used_where_the_cluster_has_them():
    kind = group_kind(crew(), SITE, "v1alpha2")
    assert kind is not None
    template = grouped(crew(), SITE, "v1alpha2").members[0].template
    assert template["spec"]["schedulingGroup"] == {"podGroupName": "demo-12345"}
    group = group_manifest(SITE, crew(), kind, owner=OWNER)
    assert group["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    assert group["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}}
    assert group_kind(crew(1), SITE, "v1alpha2") is None, "one pod is no gang"


def test_pods_without_a_group_stay_as_they_are():
    of = crew()
    assert grouped(of, SITE) is of
