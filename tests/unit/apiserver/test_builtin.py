"""The built-in kinds get what they share with each other, and questions about oneself are answered."""

import asyncio

import pytest

from paceline.apiserver.admission import service_allocator
from paceline.apiserver.admission.service_allocator import ADDRESSES, NODE_PORTS, ServiceAllocator
from tests.unit.apiserver.client import CONFIG_MAPS, MERGE, NAMESPACE, PODS, TABLE, pod

SERVICES = f"{NAMESPACE}/services"
CLAIMS = f"{NAMESPACE}/persistentvolumeclaims"
EVENTS = f"{NAMESPACE}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def service(name, **spec):
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_every_service_gets_an_address_of_its_own(client):
    made = await asyncio.gather(*(client.post(SERVICES, service(f"s{number}")) for number in range(30)))

    addresses = {each.json["spec"]["clusterIP"] for each in made}
    assert len(addresses) == 30
    assert all(each.json["spec"]["clusterIPs"] == [each.json["spec"]["clusterIP"]] for each in made)


async def test_an_address_that_a_stored_service_has_is_not_given_again(client, store):
    """Whoever looks after a restart knows only what is stored."""
    made = (await client.post(SERVICES, service("s", type="NodePort"))).json
    another = {"metadata": {"uid": "x"}, "spec": {**made["spec"]}}

    found = ServiceAllocator(store).allocate(another, None)

    assert [fault.path for fault in found] == ["spec.clusterIPs", "spec.ports[0].nodePort"]


@pytest.mark.parametrize(("address", "words"), [("10.96.3.4", "is already allocated"), ("1.2.3.4", "does not match")])
async def test_an_address_that_cannot_be_had_is_refused(client, address, words):
    await client.post(SERVICES, service("first", clusterIP="10.96.3.4"))

    said = await client.post(SERVICES, service("second", clusterIP=address))

    assert said.code == 422
    assert words in said.causes["spec.clusterIPs"]


async def test_a_service_keeps_its_address_and_ports(client):
    made = (await client.post(SERVICES, service("s", type="NodePort"))).json
    spec = {"type": "NodePort", "ports": [{"port": 80}], "selector": {"a": "b"}}

    said = await client.put(f"{SERVICES}/s", {"metadata": {"name": "s"}, "spec": spec})

    assert said.json["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    assert said.json["spec"]["ports"] == made["spec"]["ports"]
    assert made["spec"]["ports"][0]["nodePort"] in NODE_PORTS


async def test_a_service_without_an_address_gets_none(client):
    made = (await client.post(SERVICES, service("s", clusterIP="None", selector={"a": "b"}))).json

    assert (made["spec"]["clusterIP"], made["spec"]["clusterIPs"]) == ("None", ["None"])


async def test_addresses_lie_in_the_range_of_all_services(client):
    made = (await client.post(SERVICES, service("s"))).json

    assert made["spec"]["clusterIP"] in {str(each) for each in ADDRESSES}


async def test_a_pod_has_the_priority_of_its_class(client):
    await client.post(PRIORITIES, {"metadata": {"name": "high"}, "value": 7})

    made = (await client.post(PODS, pod("p", priorityClassName="high"))).json
    plain = (await client.post(PODS, pod("q"))).json
    system = (await client.post(PODS, pod("r", priorityClassName="system-node-critical"))).json

    assert [each["spec"]["priority"] for each in (made, plain, system)] == [7, 0, 2_000_001_000]


async def test_a_class_for_all_is_for_pods_that_name_none(client):
    await client.post(PRIORITIES, {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True})

    made = (await client.post(PODS, pod("p"))).json

    assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("usual", 3)


async def test_a_priority_that_is_not_there_or_is_not_its_classes_is_refused(client):
    missing = await client.post(PODS, pod("p", priorityClassName="nope"))
    wrong = await client.post(PODS, pod("p", priority=5))

    assert missing.message == 'pods "p" is forbidden: no PriorityClass with name nope was found'
    assert (missing.code, wrong.code) == (403, 403)


async def test_a_claim_that_names_no_class_gets_the_default_one(client):
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    await client.post(CLASSES, {"metadata": {"name": "usual", "annotations": annotations}, "provisioner": "a.b/c"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    made = (await client.post(CLAIMS, {"metadata": {"name": "a"}, "spec": spec})).json
    none = (await client.post(CLAIMS, {"metadata": {"name": "b"}, "spec": {**spec, "storageClassName": ""}})).json

    assert (made["spec"]["storageClassName"], none["spec"]["storageClassName"]) == ("usual", "")


async def test_a_bound_claim_grows_and_nothing_else_of_it_changes(client):
    elastic = {"metadata": {"name": "elastic"}, "provisioner": "a.b/c", "allowVolumeExpansion": True}
    await client.post(CLASSES, elastic)
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "elastic", **size}
    await client.post(CLAIMS, {"metadata": {"name": "a"}, "spec": spec})
    await client.patch(f"{CLAIMS}/a/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})

    async def ask(change):
        return (await client.patch(f"{CLAIMS}/a", {"spec": change})).code

    assert await ask({"resources": {"requests": {"storage": "2Gi"}}}) == 200
    assert await ask({"resources": {"requests": {"storage": "512Mi"}}}) == 422
    assert await ask({"accessModes": ["ReadOnlyMany"]}) == 422


async def test_one_event_is_seen_through_both_groups(client):
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    event = {"metadata": {"name": "e"}, "regarding": about, "note": "it broke", "reason": "Broken", "type": "Warning"}
    event |= {
        "reportingController": "a.b/c",
        "reportingInstance": "i",
        "action": "Look",
        "eventTime": "2030-01-01T00:00:00.000000Z",
    }

    made = await client.post(NEW_EVENTS, {"apiVersion": "events.k8s.io/v1", "kind": "Event", **event})
    old = (await client.get(f"{EVENTS}/e")).json
    listed = (await client.get(NEW_EVENTS, fieldSelector="regarding.name=p")).json

    assert (made.code, made.json["note"], made.json["apiVersion"]) == (201, "it broke", "events.k8s.io/v1")
    assert (old["message"], old["involvedObject"], old["reportingComponent"]) == ("it broke", about, "a.b/c")
    assert [each["regarding"] for each in listed["items"]] == [about]
    assert (listed["kind"], listed["apiVersion"]) == ("EventList", "events.k8s.io/v1")


async def test_an_event_is_changed_followed_and_removed_through_the_new_group(client):
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "message": "one"}
    await client.post(EVENTS, event)

    async with client.stream(NEW_EVENTS, watch="true") as stream:
        assert (await stream.event())["object"]["note"] == "one"
        await client.patch(f"{NEW_EVENTS}/e", {"note": "two"})
        assert (await stream.event())["object"]["note"] == "two"
        steps = [{"op": "replace", "path": "/note", "value": "three"}]
        await client.patch(f"{NEW_EVENTS}/e", steps, sort="application/json-patch+json")
        assert (await stream.event())["object"]["note"] == "three"
        await client.delete(f"{NEW_EVENTS}/e")
        assert (await stream.event())["type"] == "DELETED"
    missing = await client.get(f"{NEW_EVENTS}/e")

    assert missing.message == 'events.events.k8s.io "e" not found'
    assert missing.json["details"]["group"] == "events.k8s.io"


async def test_events_are_shown_alike_in_both_groups(client):
    await client.post(EVENTS, {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "message": "one"})

    old, new = [(await client.get(path, accept=TABLE)).json for path in (EVENTS, NEW_EVENTS)]

    assert [each["cells"] for each in old["rows"]] == [each["cells"] for each in new["rows"]]
    assert old["columnDefinitions"] == new["columnDefinitions"]


REVIEWS = {
    "may I": (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"resourceAttributes": {"verb": "get"}},
        "allowed",
    ),
    "what may I": ("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"namespace": "default"}, "resourceRules"),
    "who am I": ("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, "userInfo"),
}


@pytest.mark.parametrize(("path", "spec", "answer"), REVIEWS.values(), ids=REVIEWS)
async def test_a_question_about_oneself_is_answered_and_not_stored(client, store, path, spec, answer):
    before = store.revision

    said = await client.post(path, {"spec": spec} if spec else {})

    assert said.code == 201
    assert said.json["status"][answer]
    assert store.revision == before
    assert (await client.get(path)).code == 405


async def test_a_question_about_nothing_is_refused(client):
    said = await client.post(REVIEWS["may I"][0], {"spec": {}})

    assert said.code == 422


async def test_a_kind_that_is_on_its_way_out_says_so(client):
    said = await client.get(f"{NAMESPACE}/endpoints")

    assert "EndpointSlice" in said.header("warning")[0]


async def test_an_immutable_config_map_stays_as_it_is(client):
    await client.post(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "b"}, "immutable": True})

    said = await client.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "c"}, "immutable": False})

    assert said.causes == {
        "immutable": "Forbidden: field is immutable when `immutable` is set",
        "data": "Forbidden: field is immutable when `immutable` is set",
    }


@pytest.mark.parametrize("plural", ["limitranges", "resourcequotas"])
async def test_what_nobody_keeps_to_cannot_be_made(client, plural):
    listed = await client.get(f"{NAMESPACE}/{plural}")

    assert (listed.code, listed.json["items"]) == (200, [])
    assert (await client.post(f"{NAMESPACE}/{plural}", {"metadata": {"name": "a"}})).code == 405


async def test_a_pod_that_is_written_back_without_what_was_filled_in_has_not_changed(client):
    made = (await client.post(PODS, pod("p"))).json

    said = await client.put(f"{PODS}/p", pod("p"))

    assert (said.code, said.json["metadata"]["generation"]) == (200, made["metadata"]["generation"])
    assert said.json["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_an_address_is_given_once_also_while_its_service_is_still_being_written(store):
    allocator = ServiceAllocator(store)
    first, second = ({"metadata": {"uid": uid}, "spec": {"clusterIP": "10.96.3.4"}} for uid in ("a", "b"))

    assert allocator.allocate(first, None) == ()
    assert [fault.path for fault in allocator.allocate(second, None)] == ["spec.clusterIPs"]
    assert allocator.allocate(first, None) == ()


async def test_what_a_refused_service_asked_for_is_free_again(client):
    wrong = {**service("s", clusterIP="10.96.3.4"), "spec": {"clusterIP": "10.96.3.4", "ports": [{"port": 0}]}}

    async def ask(body):
        # A task of its own, as every request has.
        return (await asyncio.create_task(client.post(SERVICES, body))).code

    assert await ask(wrong) == 422
    assert await ask(service("s", clusterIP="10.96.3.4")) == 201


async def test_a_service_of_all_ports_of_the_machines_looks_at_each_once(client, monkeypatch):
    """Each port began at the first again: 2,768 of them held everybody up for a third of a second."""
    looked = []

    class Ports:
        start, stop = NODE_PORTS.start, NODE_PORTS.stop

        def __len__(self):
            return len(NODE_PORTS)

        def __contains__(self, number):
            return number in NODE_PORTS

        def __getitem__(self, part):
            looked.extend(NODE_PORTS[part])
            return NODE_PORTS[part]

    monkeypatch.setattr(service_allocator, "NODE_PORTS", Ports())
    ports = [{"name": f"p{number}", "port": number + 1} for number in range(100)]

    made = (await client.post(SERVICES, service("s", type="NodePort", ports=ports))).json

    assert len({port["nodePort"] for port in made["spec"]["ports"]}) == 100
    assert len(looked) == len(NODE_PORTS)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_a_service_that_would_keep_everybody_waiting_is_refused(client, method):
    await client.post(SERVICES, service("s"))
    body = service("s", selector={f"k{number}": "v" for number in range(40_000)})
    headers = {"content-type": MERGE} if method == "PATCH" else {}

    said = await client.send(method, SERVICES if method == "POST" else f"{SERVICES}/s", body, headers=headers)

    assert said.code == 413
    assert "the body of a Service may have" in said.message
    assert "selector" not in (await client.get(f"{SERVICES}/s")).json["spec"]
