"""The options of a log, and what is said of wrong ones: in the words that a real server was heard to use."""

import pytest

from tests.unit.apiserver.client import PODS, pod

SINCE = "2030-01-01T00:00:00Z"
WRONG = {
    "fewer lines than none": (
        {"tailLines": "-1"},
        422,
        "tailLines: Invalid value: -1: must be greater than or equal to 0",
    ),
    "no bytes": ({"limitBytes": "0"}, 422, "limitBytes: Invalid value: 0: must be greater than 0"),
    "no seconds": ({"sinceSeconds": "0"}, 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
    "two beginnings": (
        {"sinceSeconds": "1", "sinceTime": SINCE},
        422,
        "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
    ),
    "one of the outputs": ({"stream": "Stdout"}, 422, "stream: Forbidden: may not be specified"),
    "all of the outputs": ({"stream": "All"}, 422, "stream: Forbidden: may not be specified"),
    "two faults": (
        {"tailLines": "-1", "limitBytes": "0"},
        422,
        (
            "[tailLines: Invalid value: -1: must be greater than or equal to 0, "
            "limitBytes: Invalid value: 0: must be greater than 0]"
        ),
    ),
}


@pytest.mark.parametrize(("query", "code", "said"), WRONG.values(), ids=WRONG)
async def test_an_option_that_cannot_be_is_refused(client, nodes, query, code, said):
    await client.post(PODS, pod("p", nodeName="n1"))

    answer = await client.get(f"{PODS}/p/log", **query)

    assert (answer.code, answer.message) == (code, f'PodLogOptions "p" is invalid: {said}')
    assert nodes.asked == []


UNREADABLE = {
    "no number": ({"tailLines": "abc"}, 'tailLines must be an integer, not "abc"'),
    "no time": (
        {"sinceTime": "abc"},
        "sinceTime must be like 2030-01-31T12:00:00Z, not abc",
    ),
    "no such container": ({"container": "zz"}, "container zz is not valid for pod p"),
}


@pytest.mark.parametrize(("query", "said"), UNREADABLE.values(), ids=UNREADABLE)
async def test_an_option_that_cannot_be_read_is_refused(client, query, said):
    await client.post(PODS, pod("p", nodeName="n1"))

    answer = await client.get(f"{PODS}/p/log", **query)

    assert (answer.code, answer.message) == (400, said)


async def test_of_several_containers_one_must_be_named_whatever_an_annotation_says(client):
    """The annotation is for kubectl, which names the container then."""
    two = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    body = pod("p", nodeName="n1", containers=two, initContainers=[{"name": "i1", "image": "i"}])
    body["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "b"}
    await client.post(PODS, body)

    answer = await client.get(f"{PODS}/p/log")

    said = "a container name must be specified for pod p, choose one of: [i1 a b]"
    assert (answer.code, answer.message) == (400, said)


async def test_every_option_that_a_node_knows_is_passed_on_and_no_other(client, nodes):
    await client.post(PODS, pod("p", nodeName="n1"))
    nodes.queue.put_nowait(None)
    options = {
        "follow": "1",
        "previous": "true",
        "timestamps": "t",
        "tailLines": "5",
        "limitBytes": "9",
        "sinceTime": SINCE,
        "insecureSkipTLSVerifyBackend": "true",
        "pretty": "true",
    }

    assert (await client.get(f"{PODS}/p/log", **options)).code == 200

    ((_, _, asked),) = nodes.asked
    assert asked == {
        "container": "main",
        "follow": "true",
        "previous": "true",
        "timestamps": "true",
        "tailLines": "5",
        "limitBytes": "9",
        "sinceTime": SINCE,
    }


@pytest.mark.parametrize(("said", "is_on"), [("maybe", True), ("", True), ("0", False), ("False", False)])
async def test_a_flag_says_yes_unless_it_says_no(client, nodes, said, is_on):
    await client.post(PODS, pod("p", nodeName="n1"))
    nodes.queue.put_nowait(None)

    assert (await client.get(f"{PODS}/p/log", follow=said)).code == 200
    assert ("follow" in nodes.asked[0][2]) is is_on


async def test_a_pod_without_a_node_has_an_empty_log(client):
    await client.post(PODS, pod("p"))

    assert (await client.get(f"{PODS}/p/log")).code == 204
