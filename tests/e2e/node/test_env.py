"""What a program finds in its environment, its command and its folder, with real processes."""

from typing import Any

import pytest

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.shell_pods import create, ended, make_pod, phase, run_pod, shell, show, told, waits_for


def env(**values: Any) -> list[dict[str, Any]]:
    """Spell variables: text as it is, anything else as where it comes from."""
    return [
        {"name": name, "value": value} if isinstance(value, str) else {"name": name, "valueFrom": value}
        for name, value in values.items()
    ]


def field(path: str) -> dict[str, Any]:
    return {"fieldRef": {"fieldPath": path}}


def resource(name: str, divisor: str = "1") -> dict[str, Any]:
    return {"resourceFieldRef": {"resource": name, "divisor": divisor}}


@pytest.fixture(scope="module", autouse=True)
def sources(cluster: Embedded) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"token": "t0p"}}
    data = {"lr": "0.1", "dotted.name-x": "odd"}
    create(cluster, secret, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": data})


def test_a_pod_is_told_about_itself(cluster: Embedded) -> None:
    told_of = env(
        NAME=field("metadata.name"),
        SPACE=field("metadata.namespace"),
        LABEL=field("metadata.labels['app.example/part']"),
        NOTE=field("metadata.annotations['why']"),
        NONE=field("metadata.labels['absent']"),
        ACCOUNT=field("spec.serviceAccountName"),
    )
    said = run_pod(
        cluster,
        "self",
        shell('echo "$NAME $SPACE $LABEL $NOTE [$NONE] $ACCOUNT"', env=told_of),
        metadata={"labels": {"app.example/part": "main"}, "annotations": {"why": "test"}},
    )

    assert said == ["self default main test [] default"]


def test_a_pod_is_told_where_it_is(cluster: Embedded) -> None:
    told_of = env(IP=field("status.podIP"), IPS=field("status.podIPs"), NODE=field("spec.nodeName"))
    said = run_pod(cluster, "where", shell('echo "$IP $IPS $NODE $(hostname)"', env=told_of))
    found = show(cluster, "pod", "where")

    address = found["status"]["podIP"]
    assert said == [f"{address} {address} {found['spec']['nodeName']} where"]


def test_a_container_is_told_what_it_may_use(cluster: Embedded) -> None:
    told_of = env(
        CPU=resource("limits.cpu"),
        MILLI=resource("limits.cpu", "1m"),
        MEMORY=resource("limits.memory"),
        MEBI=resource("requests.memory", "1Mi"),
        NONE=resource("requests.ephemeral-storage"),
    )
    main = shell(
        "echo $CPU $MILLI $MEMORY $MEBI $NONE",
        env=told_of,
        resources={"limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "10m", "memory": "33M"}},
    )

    assert run_pod(cluster, "amounts", main) == [f"2 1500 {64 * 2**20} 32 0"]


def test_a_container_without_limits_is_told_what_the_machine_has(cluster: Embedded) -> None:
    main = shell("echo $CPU; nproc --all", env=env(CPU=resource("limits.cpu")))
    told_of, has = run_pod(cluster, "unlimited", main)

    assert 1 <= int(told_of) <= int(has)


def test_values_come_from_config_maps_and_secrets(cluster: Embedded) -> None:
    """X-25: and what is secret is not shown."""
    told_of = env(
        LR={"configMapKeyRef": {"name": "conf", "key": "lr"}},
        TOKEN={"secretKeyRef": {"name": "keys", "key": "token"}},
        NO_KEY={"configMapKeyRef": {"name": "conf", "key": "absent", "optional": True}},
        NO_MAP={"secretKeyRef": {"name": "absent", "key": "x", "optional": True}},
    )

    said = run_pod(cluster, "values", shell('echo $LR $TOKEN "${NO_KEY-unset}" "${NO_MAP-unset}"', env=told_of))
    assert said == ["0.1 t0p unset unset"]
    described = [run("describe", "pod/values").out for run in (cluster.paceline, cluster.kubectl)]
    assert {"keys" in each for each in described} == {True}
    assert {"t0p" in each for each in described} == {False}


def test_whole_config_maps_become_variables(cluster: Embedded) -> None:
    blocks = [
        {"configMapRef": {"name": "conf"}},
        {"prefix": "S_", "secretRef": {"name": "keys"}},
        {"configMapRef": {"name": "absent", "optional": True}},
    ]
    code = "import os; print([os.environ.get(x) for x in ('lr', 'dotted.name-x', 'S_token')])"
    main = {"name": "main", "image": "python:3.11", "command": ["python", "-c", code], "envFrom": blocks}

    assert run_pod(cluster, "blocks", main) == ["['0.1', 'odd', 't0p']"]
    assert run_pod(cluster, "blocks-own", {**main, "env": env(lr="mine")}) == ["['mine', 'odd', 't0p']"]


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        ({"configMapKeyRef": {"name": "absent", "key": "x"}}, 'configmap "absent" not found'),
        ({"secretKeyRef": {"name": "keys", "key": "x"}}, "couldn't find key x in Secret default/keys"),
        ({"configMapKeyRef": {"name": "conf", "key": "x"}}, "couldn't find key x in ConfigMap default/conf"),
    ],
)
def test_a_value_that_is_not_there_keeps_the_container_waiting(
    cluster: Embedded, wire: dict[str, Any], said: str
) -> None:
    name = f"lacks-{len(said)}"
    make_pod(cluster, name, shell("true", env=env(X=wire)))

    assert waits_for(cluster, name, "CreateContainerConfigError") == said
    assert told(cluster, name, "Failed") == f"Error: {said}"
    cluster.kubectl("delete", "pod", name, "--wait=false")


def test_a_container_starts_once_its_config_map_is_there(cluster: Embedded) -> None:
    make_pod(cluster, "later", shell("echo $X", env=env(X={"configMapKeyRef": {"name": "later", "key": "x"}})))
    waits_for(cluster, "later", "CreateContainerConfigError")
    create(cluster, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}, "data": {"x": "now"}})

    assert ended(cluster, "later") == "Succeeded"
    assert cluster.kubectl("logs", "later").out == "now\n"


def test_references_are_replaced_in_order_in_variables_command_and_arguments(cluster: Embedded) -> None:
    main = {
        "name": "main",
        "image": "python:3.11",
        "command": ["echo", "$(FIRST)"],
        "args": ["$(SECOND)", "$$(FIRST)", "$(UNKNOWN)", "$FIRST", "$(THIRD)"],
        "env": env(THIRD="$(SECOND)", FIRST="1", SECOND="$(FIRST)2"),
    }

    assert run_pod(cluster, "refers", main) == ["1 12 $(FIRST) $(UNKNOWN) $FIRST $(SECOND)"]


def test_a_container_runs_where_it_wants_and_the_folder_is_made(cluster: Embedded) -> None:
    for number, folder in enumerate(("/work/deep", "/usr/local/no-such-folder", "/tmp")):
        assert run_pod(cluster, f"in-{number}", shell("pwd", workingDir=folder)) == [folder]


def test_what_the_agent_has_in_its_environment_is_not_seen(cluster: Embedded) -> None:
    said = run_pod(cluster, "clean", shell("env | cut -d= -f1 | grep -v ^KUBERNETES_ | sort | tr '\\n' ' '"))

    assert said == ["HOME HOSTNAME LANG PATH PWD "]


def test_an_image_that_nobody_mapped_is_said_with_the_line_that_would_map_it(cluster: Embedded) -> None:
    make_pod(cluster, "alien", {**shell("true"), "image": "acme/secret:7"})

    why = waits_for(cluster, "alien", "ImagePullBackOff")
    assert why.startswith('Back-off pulling image "acme/secret:7": ErrImagePull: ')
    assert "paceline up --image 'acme/secret:7=host'" in why
    assert phase(cluster, "pod", "alien") == "Pending"
    cluster.kubectl("delete", "pod", "alien", "--wait=false")


def test_an_image_that_must_not_be_pulled_and_is_not_there_is_said(cluster: Embedded) -> None:
    make_pod(cluster, "never", {**shell("true"), "image": "acme/secret:7", "imagePullPolicy": "Never"})

    said = 'Container image "acme/secret:7" is not present with pull policy of Never'
    assert waits_for(cluster, "never", "ErrImageNeverPull").startswith(said)
    assert told(cluster, "never", "ErrImageNeverPull").startswith(said)
    cluster.kubectl("delete", "pod", "never", "--wait=false")


def test_the_environment_that_stands_for_an_image_is_told(cluster: Embedded) -> None:
    run_pod(cluster, "told", shell("true"))

    said = 'Container image "python:3.11" is the environment "host" on this machine'
    assert wait_until("it is told", lambda: told(cluster, "told", "Pulled")) == said
