"""Variables and commands of a container, as a kubelet works them out."""

import pytest

from paceline.node.host_info import CannotStart
from paceline.node.runtime.env import command_of, env_of, expand
from paceline.node.volumes.references import Sources, entries, references
from tests.unit.node.pods import UID, container, pod

KNOWN = {"A": "1", "NAME": "x y"}
SOURCES = Sources(entries={("configmap", "settings"): {"lr": b"0.1"}, ("secret", "keys"): {"token": b"t0p"}})


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A)", "1"),
        ("a-$(A)-$(NAME)", "a-1-x y"),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("100$$", "100$"),
    ],
)
def test_references_are_replaced_as_kubernetes_does(text, result):
    assert expand(text, KNOWN) == result


def env(*wire, **fields):
    return env_of(pod(meta={"labels": {"app": "demo"}}), container(env=list(wire), **fields), SOURCES)


def test_a_variable_may_refer_to_those_before_it_only():
    wire = [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}, {"name": "C", "value": "$(A)2"}]

    assert env(*wire) == {"B": "$(A)", "A": "1", "C": "12"}


def test_a_variable_may_refer_to_what_every_container_is_told():
    wire = [{"name": "URL", "value": "https://$(KUBERNETES_SERVICE_HOST)"}]
    told = {"KUBERNETES_SERVICE_HOST": "kubernetes.default.svc"}

    assert env_of(pod(), container(env=wire), SOURCES, defaults=told) == {"URL": "https://kubernetes.default.svc"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "demo"),
        ("metadata.namespace", "team"),
        ("metadata.uid", UID),
        ("metadata.labels['app']", "demo"),
        ("spec.nodeName", "box"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_a_pod_is_told_about_itself(path, value):
    assert env({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}) == {"X": value}


def test_values_come_from_config_maps_secrets_and_resources():
    found = env(
        {"name": "LR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "lr"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        {"name": "NOT", "valueFrom": {"secretKeyRef": {"name": "no", "key": "x", "optional": True}}},
        envFrom=[{"prefix": "S_", "configMapRef": {"name": "settings"}}],
        resources={"limits": {"memory": "1Gi"}},
    )

    assert found == {"S_lr": "0.1", "LR": "0.1", "TOKEN": "t0p", "MEM": "1024"}


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        ({"configMapKeyRef": {"name": "no", "key": "lr"}}, 'configmap "no" not found'),
        ({"secretKeyRef": {"name": "keys", "key": "no"}}, "couldn't find key no in Secret team/keys"),
        ({"fieldRef": {"fieldPath": "spec.secret"}}, "'spec.secret' is not supported"),
        ({"resourceFieldRef": {"resource": "limits.example.com/x"}}, "has no such resource"),
    ],
)
def test_a_value_that_is_not_there_keeps_the_container_waiting(wire, said):
    with pytest.raises(CannotStart, match=said) as caught:
        env({"name": "X", "valueFrom": wire})
    assert caught.value.reason == "CreateContainerConfigError"


def test_a_nul_is_refused():
    with pytest.raises(CannotStart, match="NUL"):
        env({"name": "X", "value": "a\0b"})


def test_command_and_args_are_one_line_with_references_replaced():
    assert command_of({"name": "c", "command": ["sh", "-c"], "args": ["echo $(A)"]}, KNOWN) == ("sh", "-c", "echo 1")
    assert command_of({"name": "c", "args": ["python", "x.py"]}, {}) == ("python", "x.py")


def test_a_container_without_a_command_says_what_to_write():
    with pytest.raises(CannotStart, match="set `command`") as caught:
        command_of({"name": "c"}, {})
    assert caught.value.reason == "CreateContainerError"


def test_everything_that_a_pod_reads_is_named():
    subject = pod(
        container(
            env=[{"name": "X", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k"}}}],
            envFrom=[{"configMapRef": {"name": "b"}}],
        ),
        initContainers=[container("i", envFrom=[{"secretRef": {"name": "c"}}])],
        volumes=[{"name": "v", "configMap": {"name": "d"}}, {"name": "w", "secret": {"secretName": "e"}}],
    )

    assert set(references(subject)) == {
        ("secret", "a"),
        ("configmap", "b"),
        ("secret", "c"),
        ("configmap", "d"),
        ("secret", "e"),
    }


def test_secrets_are_decoded_and_config_maps_are_not():
    assert entries({"kind": "Secret", "data": {"k": "aGk=", "bad": "%"}}) == {"k": b"hi"}
    assert entries({"kind": "ConfigMap", "data": {"k": "aGk="}, "binaryData": {"b": "aGk="}}) == {
        "k": b"aGk=",
        "b": b"hi",
    }


def test_amounts_of_another_container_are_told():
    wire = {"resourceFieldRef": {"containerName": "beside", "resource": "limits.memory", "divisor": "1Mi"}}
    subject = pod(container(), container("beside", resources={"limits": {"memory": "32Mi"}}))
    asking = container(env=[{"name": "M", "valueFrom": wire}])

    assert env_of(subject, asking, SOURCES) == {"M": "32"}


def test_bytes_are_no_variables():
    name = ("configmap", "mixed")
    sources = Sources(entries={name: {"text": b"a", "bytes": b"\x00"}}, binary={name: frozenset({"bytes"})})
    block, key = {"configMapRef": {"name": "mixed"}}, {"configMapKeyRef": {"name": "mixed", "key": "bytes"}}

    assert env_of(pod(), container(envFrom=[block]), sources) == {"text": "a"}
    with pytest.raises(CannotStart, match="couldn't find key bytes in ConfigMap"):
        env_of(pod(), container(env=[{"name": "B", "valueFrom": key}]), sources)
