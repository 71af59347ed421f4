"""What only pods have: defaults, being bound, a log."""

import asyncio

import pytest

from paceline.errors import BadRequest, ServiceUnavailable
from tests.unit.apiserver.client import PODS, pod


async def test_a_pod_is_completed_as_kubernetes_does(client):
    made = (await client.post(PODS, pod("p"))).json

    assert made["spec"] == {
        "containers": [
            {
                "name": "main",
                "image": "busybox:1.36",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{trouble}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for trouble in ("not-ready", "unreachable")
        ],
    }
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


FAULTS = {
    "no containers": ({"containers": []}, "spec.containers", "Required value"),
    "a container without an image": ({"containers": [{"name": "a"}]}, "spec.containers[0].image", "Required value"),
    "two containers of one name": (
        {"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]},
        "spec.containers[1].name",
        'Duplicate value: "a"',
    ),
    "a mount of no volume": (
        {"containers": [{"name": "a", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/m"}]}]},
        "spec.containers[0].volumeMounts[0].name",
        'Not found: "v"',
    ),
    "a restart policy that is none": (
        {"restartPolicy": "Sometimes"},
        "spec.restartPolicy",
        'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
    ),
    "more asked for than allowed": (
        {
            "containers": [
                {"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}}
            ]
        },
        "spec.containers[0].resources.requests",
        'Invalid value: "2": must be less than or equal to cpu limit of 1500m',
    ),
    "a port beyond all ports": (
        {"containers": [{"name": "a", "image": "i", "ports": [{"containerPort": 70000}]}]},
        "spec.containers[0].ports[0].containerPort",
        "Invalid value: 70000: must be between 1 and 65535, inclusive",
    ),
    "a volume of two sorts": (
        {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
        "spec.volumes[0].hostPath",
        "Forbidden: may not specify more than 1 volume type",
    ),
    "a way out of a volume": (
        {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [
                {
                    "name": "a",
                    "image": "i",
                    "volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": "a/../../b"}],
                }
            ],
        },
        "spec.containers[0].volumeMounts.subPath",
        "Invalid value: \"a/../../b\": must not contain '..'",
    ),
}


@pytest.mark.parametrize(("spec", "path", "said"), FAULTS.values(), ids=FAULTS)
async def test_what_is_wrong_with_a_pod_is_told(client, spec, path, said):
    answer = await client.post(PODS, pod("p", **spec))

    assert answer.code == 422
    assert answer.causes[path] == said


async def test_a_pod_is_bound_once(client):
    await client.post(PODS, pod("p"))

    first = await client.post(f"{PODS}/p/binding", {"target": {"kind": "Node", "name": "n1"}})
    second = await client.post(f"{PODS}/p/binding", {"target": {"kind": "Node", "name": "n2"}})
    bound = (await client.get(f"{PODS}/p")).json

    assert (first.code, first.json["status"]) == (201, "Success")
    assert (second.code, second.json["reason"]) == (409, "Conflict")
    assert second.message == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
    ]
    assert bound["metadata"]["generation"] == 1


async def test_of_two_who_bind_at_once_one_succeeds(client):
    await client.post(PODS, pod("p"))

    answers = await asyncio.gather(
        *(client.post(f"{PODS}/p/binding", {"target": {"name": f"n{number}"}}) for number in range(5))
    )

    assert sorted(each.code for each in answers) == [201, 409, 409, 409, 409]


async def test_only_the_pod_that_was_meant_is_bound(client):
    await client.post(PODS, pod("p"))
    body = {"metadata": {"uid": "other"}, "target": {"name": "n1"}}

    assert (await client.post(f"{PODS}/p/binding", body)).code == 409
    assert (await client.post(f"{PODS}/nope/binding", {"target": {"name": "n1"}})).code == 404
    assert "nodeName" not in (await client.get(f"{PODS}/p")).json["spec"]


@pytest.mark.parametrize("body", [{}, {"target": {}}, {"target": []}, {"target": {"name": "A/B"}}], ids=str)
async def test_a_binding_to_nothing_is_refused(client, body):
    await client.post(PODS, pod("p"))

    assert (await client.post(f"{PODS}/p/binding", body)).code == 422


@pytest.fixture
async def running(client):
    await client.post(PODS, pod("p"))
    await client.post(f"{PODS}/p/binding", {"target": {"name": "n1"}})


@pytest.mark.usefixtures("running")
async def test_a_log_is_passed_on_as_it_grows(client, nodes):
    async with client.stream(f"{PODS}/p/log", follow="true", tailLines="5") as stream:
        nodes.queue.put_nowait(b"first\n")
        assert await stream.chunk() == b"first\n"
        nodes.queue.put_nowait(b"second\n")
        assert await stream.chunk() == b"second\n"
        nodes.queue.put_nowait(None)
        assert await stream.chunk() == b""
        assert await stream.chunk() is None

    assert nodes.asked == [("default", "p", {"follow": "true", "tailLines": "5", "container": "main"})]


@pytest.mark.usefixtures("running")
async def test_the_node_is_hung_up_on_when_the_client_hangs_up(client, nodes):
    """Also while a quiet pod has not said anything yet."""
    async with client.stream(f"{PODS}/p/log", follow="true"):
        async with asyncio.timeout(30):
            await nodes.was_asked.wait()

    assert nodes.closed.is_set()


FAILURES = {
    "a busy node": (ServiceUnavailable("not now"), 503),
    "a wrong question": (BadRequest("no such container"), 400),
}


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(("error", "code"), FAILURES.values(), ids=FAILURES)
async def test_what_a_node_refuses_is_refused(client, nodes, error, code):
    nodes.queue.put_nowait(error)

    said = await client.get(f"{PODS}/p/log")

    assert (said.code, said.json["kind"], said.message) == (code, "Status", str(error))


@pytest.mark.usefixtures("running")
async def test_a_log_that_breaks_off_ends(client, nodes):
    nodes.queue.put_nowait(b"first\n")
    nodes.queue.put_nowait(ServiceUnavailable("the node is gone"))

    said = await client.get(f"{PODS}/p/log")

    assert (said.code, said.body) == (200, b"first\n")


BAD_QUERIES = {
    "an unknown container": ({"container": "x"}, 400),
    "a number that is none": ({"tailLines": "x"}, 400),
    "a negative number": ({"tailLines": "-1"}, 422),
    "a time that is none": ({"sinceTime": "yesterday"}, 400),
    "two ways to say since": ({"sinceTime": "2030-01-01T00:00:00Z", "sinceSeconds": "5"}, 422),
}


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(("query", "code"), BAD_QUERIES.values(), ids=BAD_QUERIES)
async def test_a_log_that_cannot_be_shown_is_refused(client, nodes, query, code):
    assert (await client.get(f"{PODS}/p/log", **query)).code == code
    assert nodes.asked == []


async def test_a_pod_without_a_node_has_nothing_to_say(client):
    await client.post(PODS, pod("p"))

    assert (await client.get(f"{PODS}/p/log")).code == 204
    assert (await client.get(f"{PODS}/nope/log")).code == 404


async def test_of_several_containers_one_must_be_named(client):
    await client.post(PODS, pod("p", containers=[{"name": name, "image": "i"} for name in ("a", "b")]))

    said = await client.get(f"{PODS}/p/log")

    assert said.message == "a container name must be specified for pod p, choose one of: [a b]"
