"""Bodies in protobuf are read as what they say, and bytes that say nothing are refused."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.apiserver.encoding.protobuf import MAGIC, PROTOBUF, decode
from paceline.errors import BadRequest
from tests.unit.apiserver.client import CONFIG_MAPS, NAMESPACE

FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)


def varint(number):
    number &= 2**64 - 1
    written = b""
    while number > 0x7F:
        written += bytes([number & 0x7F | 0x80])
        number >>= 7
    return written + bytes([number])


def field(number, value):
    """One field: a number, text, or bytes that are a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def envelope(version, kind, raw):
    return MAGIC + message((1, message((1, version), (2, kind))), (2, raw), (3, ""), (4, ""))


# As kubectl sends them: what is empty is there too.
META = message(
    (1, "n"), (2, ""), (3, ""), (4, ""), (5, ""), (6, ""), (7, 0), (8, b""), (11, message((1, "a"), (2, "b")))
)
READ_META = {
    "name": "n",
    "generateName": "",
    "namespace": "",
    "selfLink": "",
    "uid": "",
    "resourceVersion": "",
    "generation": 0,
    "creationTimestamp": None,
    "labels": {"a": "b"},
}
PORT = message((1, "http"), (2, 0), (3, 80), (4, "TCP"), (5, ""))
PROBE = message((1, message((2, message((1, "/"), (2, message((1, 1), (2, 0), (3, "http"))))))), (2, -5))
CONTAINER = message((1, "c"), (2, "i"), (3, "sh"), (3, "-c"), (6, PORT), (10, PROBE))
LIMITS = message((1, message((1, "cpu"), (2, message((1, "500m"))))))
CASES = {
    "a config map": (
        envelope(
            "v1",
            "ConfigMap",
            message((1, META), (2, message((1, "k"), (2, "v"))), (3, message((1, "b"), (2, b"\x00\x01")))),
        ),
        {"metadata": READ_META, "data": {"k": "v"}, "binaryData": {"b": "AAE="}},
    ),
    "a pod": (
        envelope(
            "v1",
            "Pod",
            message((2, message((2, CONTAINER + message((8, LIMITS))), (4, 30), (14, message((4, 7), (4, 8)))))),
        ),
        {
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "command": ["sh", "-c"],
                        "ports": [
                            {"name": "http", "hostPort": 0, "containerPort": 80, "protocol": "TCP", "hostIP": ""}
                        ],
                        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "initialDelaySeconds": -5},
                        "resources": {"limits": {"cpu": "500m"}},
                    }
                ],
                "terminationGracePeriodSeconds": 30,
                "securityContext": {"supplementalGroups": [7, 8]},
            }
        },
    ),
    "a time": (
        envelope("coordination.k8s.io/v1", "Lease", message((2, message((3, message((1, 1893456000), (2, 5000))))))),
        {"spec": {"acquireTime": "2030-01-01T00:00:00.000005Z"}},
    ),
    "how to delete": (
        envelope(
            "storage.k8s.io/v1", "DeleteOptions", message((1, 5), (2, message((1, "u"))), (4, "Orphan"), (5, "All"))
        ),
        {
            "gracePeriodSeconds": 5,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Orphan",
            "dryRun": ["All"],
        },
    ),
    "a field of a later version": (
        envelope("v1", "Namespace", message((1, META), (99, "new"), (98, 7))),
        {"metadata": READ_META},
    ),
}


@pytest.mark.parametrize(("body", "read"), CASES.values(), ids=CASES)
def test_what_is_sent_is_read(body, read):
    whole = decode(body)

    assert {name: value for name, value in whole.items() if name not in {"apiVersion", "kind"}} == read


def test_a_kind_that_is_not_known_is_left_to_others():
    assert decode(envelope("toys.test/v1", "Widget", b"")) is None


BROKEN = {
    "no mark": b"k9s\x00",
    "an end too early": envelope("v1", "ConfigMap", META)[:-40],
    "a length beyond the end": MAGIC + b"\x0a\xff\x01",
    "a number that never ends": MAGIC + b"\xff" * 20,
    "a wire type that is none": MAGIC + b"\x0f",
    "text that is no text": envelope("v1", "ConfigMap", message((1, message((1, b"\xff"))))),
    "a number for a message": envelope("v1", "ConfigMap", message((1, 5))),
    "bytes for a number": envelope("v1", "Pod", message((2, message((4, "x"))))),
    "a time after all times": envelope("v1", "Event", message((6, message((1, 2**62))))),
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_said_to_be(body):
    with pytest.raises(BadRequest):
        decode(body)


@FUZZ
@given(raw=st.binary(max_size=200), kind=st.sampled_from(["ConfigMap", "Pod", "Service", "Event", "DeleteOptions"]))
def test_any_bytes_are_read_or_refused(raw, kind):
    try:
        decode(envelope("v1", kind, raw))
    except BadRequest:
        return


async def send(client, method, path, body):
    return await client.send(method, path, body, headers={"content-type": PROTOBUF})


async def test_an_object_in_protobuf_is_stored_as_one_in_json_is(client):
    made = await send(client, "POST", CONFIG_MAPS, CASES["a config map"][0])

    assert (made.code, made.json["data"], made.json["metadata"]["labels"]) == (201, {"k": "v"}, {"a": "b"})
    assert (await client.get(f"{CONFIG_MAPS}/n")).json == made.json


async def test_options_in_protobuf_are_kept_to(client):
    await send(client, "POST", CONFIG_MAPS, CASES["a config map"][0])
    other = envelope("v1", "DeleteOptions", message((2, message((1, "other")))))

    assert (await send(client, "DELETE", f"{CONFIG_MAPS}/n", other)).code == 409


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
async def test_broken_bytes_are_a_bad_request(client, store, body):
    before = store.revision

    said = await send(client, "POST", CONFIG_MAPS, body)

    assert (said.code, said.json["reason"], store.revision) == (400, "BadRequest", before)


async def test_a_kind_without_protobuf_is_not_read_in_it(client):
    body = envelope("toys.test/v1", "Widget", b"")

    assert (await send(client, "POST", "/apis/toys.test/v1/namespaces/default/widgets", body)).code == 415
    assert (await send(client, "POST", f"{NAMESPACE}/nonesuch", body)).code == 404
