"""What a program finds in its environment, its command and its folder, with real processes."""

from typing import Any

import pytest

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.shell_pods import create, make_pod, phase, run_pod, shell, told, waits_for


def env(**values: Any) -> list[dict[str, Any]]:
    """Spell variables: text as it is, anything else as where it comes from."""
    return [
        {"name": name, "value": value} if isinstance(value, str) else {"name": name, "valueFrom": value}
        for name, value in values.items()
    ]


@pytest.fixture(scope="module", autouse=True)
def sources(cluster: Embedded) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"token": "t0p"}}
    data = {"lr": "0.1", "dotted.name-x": "odd"}
    create(cluster, secret, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": data})


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
