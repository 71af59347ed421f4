"""What every cluster promises about the kinds that Kubernetes has of its own."""

import asyncio
from typing import Any

import pytest

from paceline.apimachinery.meta import Object
from paceline.client.interface import CLAIMS, EVENTS, PODS, SERVICES, Collection
from paceline.errors import BadRequest, Invalid
from paceline.testing.contract.target import Promise, Subject, assert_absent, pod_spec

SECRETS = Collection(group="", version="v1", plural="secrets")
NEW_EVENTS = Collection(group="events.k8s.io", version="v1", plural="events")


def _spelled(s: Subject, kind: str, name: str, **parts: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"namespace": s.namespace, "name": name}, **parts}


async def every_service_gets_an_address_of_its_own_and_keeps_it(s: Subject) -> None:
    spec = {"ports": [{"port": 80}]}
    manifests = (_spelled(s, "Service", f"s{number}", spec=spec) for number in range(5))
    services = await asyncio.gather(*(s.cluster.create(SERVICES, service) for service in manifests))

    addresses = {service["spec"]["clusterIP"] for service in services}
    assert len(addresses) == 5
    with pytest.raises(Invalid, match="may not change once set"):
        await s.cluster.patch(SERVICES, (s.namespace, "s0"), {"spec": {"clusterIP": "10.96.200.200"}})
    again = {**spec, "clusterIP": services[0]["spec"]["clusterIP"]}
    with pytest.raises(Invalid, match="provided IP is already allocated"):
        await s.cluster.create(SERVICES, _spelled(s, "Service", "thief", spec=again))


async def a_service_gives_back_what_its_new_type_has_no_use_for(s: Subject) -> None:
    spec = {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80}]}
    service = await s.cluster.create(SERVICES, _spelled(s, "Service", "outside", spec=spec))
    assert service["status"] == {"loadBalancer": {}}
    assert 30_000 <= service["spec"]["ports"][0]["nodePort"] < 32_768
    key, reached = (s.namespace, "outside"), {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}

    patched = await s.cluster.patch(SERVICES, key, {"status": reached}, subresource="status")
    assert patched["status"] == {"loadBalancer": {"ingress": [{"ip": "192.0.2.9", "ipMode": "VIP"}]}}
    high = await s.cluster.patch(SERVICES, key, {"spec": {"type": "NodePort"}})
    assert high["spec"]["ports"] == service["spec"]["ports"]
    assert "allocateLoadBalancerNodePorts" not in high["spec"]
    assert high["status"] == {"loadBalancer": {}}
    inside = await s.cluster.patch(SERVICES, key, {"spec": {"type": "ClusterIP"}})
    assert inside["spec"]["ports"] == [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}]
    assert "externalTrafficPolicy" not in inside["spec"]
    assert inside["spec"]["clusterIP"] == service["spec"]["clusterIP"]


async def a_secret_written_as_text_is_kept_as_bytes(s: Subject) -> None:
    secret = await s.cluster.create(SECRETS, _spelled(s, "Secret", "a", stringData={"key": "text"}))

    assert secret["data"] == {"key": "dGV4dA=="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret


async def a_pod_is_told_what_it_did_not_say(s: Subject) -> None:
    created = await s.cluster.create(PODS, s.pod("p"))

    spec = created["spec"]
    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["priority"]) == ("Always", "ClusterFirst", 0)
    assert [toleration["tolerationSeconds"] for toleration in spec["tolerations"]] == [300, 300]
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def amounts_are_shown_in_one_way(s: Subject) -> None:
    container = {**pod_spec()["containers"][0], "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}
    pod = {**s.pod("p"), "spec": {"containers": [container]}}

    created = await s.cluster.create(PODS, pod)

    shown = {"cpu": "500m", "memory": "1Gi"}
    assert created["spec"]["containers"][0]["resources"] == {"limits": shown, "requests": shown}


async def a_value_of_a_wrong_type_cannot_be_read(s: Subject) -> None:
    pod = {**s.pod("p"), "spec": {**pod_spec(), "hostNetwork": "yes"}}

    with pytest.raises(BadRequest, match=r"spec\.hostNetwork"):
        await s.cluster.create(PODS, pod)
    await assert_absent(s, PODS, "p")


async def a_pod_is_not_changed_into_another(s: Subject) -> None:
    await s.cluster.create(PODS, s.pod("p"))

    with pytest.raises(Invalid, match="pod updates may not change fields other than"):
        await s.cluster.patch(PODS, (s.namespace, "p"), {"spec": {"restartPolicy": "Never"}})


async def a_claim_is_held_until_nobody_uses_it(s: Subject) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    claim = await s.cluster.create(CLAIMS, _spelled(s, "PersistentVolumeClaim", "c", spec=spec))

    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


async def an_event_is_seen_through_both_groups(s: Subject) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": s.namespace}
    await s.cluster.create(EVENTS, _spelled(s, "Event", "e", involvedObject=about, message="it broke", reason="Broken"))

    event = await s.cluster.get(NEW_EVENTS, s.namespace, "e")

    assert (event["regarding"], event["note"], event["reason"]) == (about, "it broke", "Broken")
    assert event["apiVersion"] == "events.k8s.io/v1"


async def whoever_asks_is_told_what_they_may_do(s: Subject) -> None:
    attributes = {"resourceAttributes": {"namespace": s.namespace, "verb": "get", "resource": "pods"}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes}

    answer = await s.cluster.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)

    assert answer["status"]["allowed"] is True


PROMISES: tuple[Promise, ...] = (
    every_service_gets_an_address_of_its_own_and_keeps_it,
    a_service_gives_back_what_its_new_type_has_no_use_for,
    a_secret_written_as_text_is_kept_as_bytes,
    a_pod_is_told_what_it_did_not_say,
    amounts_are_shown_in_one_way,
    a_value_of_a_wrong_type_cannot_be_read,
    a_pod_is_not_changed_into_another,
    a_claim_is_held_until_nobody_uses_it,
    an_event_is_seen_through_both_groups,
    whoever_asks_is_told_what_they_may_do,
)
