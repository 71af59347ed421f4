"""Kubeconfigs in every form that people have."""

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paceline.client.kubeconfig import discover, in_cluster, load
from paceline.client.rest_config import Access, from_json
from paceline.errors import HostError

HOME = Path("/home/ann")


def encoded(text):
    return base64.b64encode(text).decode()


def config(**changes):
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443/"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    return whole | changes


def files(**texts):
    """A file system of a few files: `kube_config` is /home/ann/.kube/config."""
    held = {HOME / ".kube" / name: text for name, text in texts.items()}

    def read(path):
        if path not in held:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        text = held[path]
        return text if isinstance(text, bytes) else yaml.safe_dump(text).encode()

    return read


def loaded(whole, **others):
    return load(HOME / ".kube" / "config", files(config=whole, **others))


def user(**fields):
    return config(users=[{"name": "u", "user": fields}])


def cluster(**fields):
    return config(clusters=[{"name": "c", "cluster": {"server": "https://s", **fields}}])


def test_a_token_and_a_server():
    assert loaded(config()) == Access(server="https://10.0.0.1:6443", token="secret")


def test_what_stands_in_the_file_itself():
    whole = cluster(**{"certificate-authority-data": encoded(b"CA"), "tls-server-name": "api"})
    whole["users"][0]["user"] = {
        "client-certificate-data": encoded(b"CERT"),
        "client-key-data": encoded(b"KEY"),
    }
    whole["contexts"][0]["context"]["namespace"] = "team"

    assert loaded(whole) == Access(
        server="https://s",
        ca=b"CA",
        client_certificate=b"CERT",
        client_key=b"KEY",
        namespace="team",
        tls_server_name="api",
    )


def test_files_are_found_beside_the_kubeconfig():
    whole = cluster(**{"certificate-authority": "ca.pem"})
    whole["users"][0]["user"] = {
        "client-certificate": "cert.pem",
        "client-key": str(HOME / ".kube" / "key.pem"),
    }

    access = loaded(whole, **{"ca.pem": b"CA", "cert.pem": b"CERT", "key.pem": b"KEY"})

    assert (access.ca, access.client_certificate, access.client_key) == (b"CA", b"CERT", b"KEY")


def test_doubts_are_only_set_aside_when_it_is_said():
    assert loaded(cluster(**{"insecure-skip-tls-verify": True})).is_insecure
    assert not loaded(config()).is_insecure


def test_another_context_by_name():
    whole = config()
    whole["clusters"].append({"name": "d", "cluster": {"server": "https://other"}})
    whole["contexts"].append({"name": "y", "context": {"cluster": "d"}})

    access = load(HOME / ".kube" / "config", files(config=whole), context="y")

    assert access == Access(server="https://other")


PROBLEMS = {
    "a context that is not there": (
        config(**{"current-context": "xx"}),
        "no context named 'xx'; did you mean 'x'? It has: x",
    ),
    "no context is chosen": (config(**{"current-context": ""}), "name one of these with --context: x"),
    "a cluster that is not there": (
        config(clusters=[{"name": "east", "cluster": {}}]),
        "no cluster named 'c'; it has: east",
    ),
    "a user that is not there": (config(users=[]), "no user named 'u'; it has: none"),
    "a server that is no URL": (
        config(clusters=[{"name": "c", "cluster": {"server": "localhost:80"}}]),
        "server is 'localhost:80'; a URL",
    ),
    "data that is not base64": (
        cluster(**{"certificate-authority-data": "???"}),
        "certificate-authority-data is not base64",
    ),
    "a file that is not there": (
        cluster(**{"certificate-authority": "ca.pem"}),
        "cannot read /home/ann/.kube/ca.pem: No such file or directory",
    ),
    "a log-in program": (user(exec={"command": "aws"}), "`exec`, which is not supported yet"),
    "a token in a file": (user(tokenFile="/t"), "`tokenFile`, which is not supported yet"),
    "a proxy": (cluster(**{"proxy-url": "http://p"}), "proxy-url, which is not supported yet"),
    "clusters that are no list": (config(clusters={"c": {}}), "`clusters` is not a list"),
    "a file that holds a list": ([1, 2], "holds no mapping"),
    "a file that is no YAML": (b"a: [", "neither JSON nor YAML"),
}


@pytest.mark.parametrize(("whole", "said"), PROBLEMS.values(), ids=PROBLEMS)
def test_problems_say_what_would_mend_them(whole, said):
    with pytest.raises(HostError) as caught:
        loaded(whole)
    assert said in str(caught.value)


def test_the_first_of_several_files_wins():
    first = config(contexts=[], clusters=[{"name": "c", "cluster": {"server": "https://first"}}])
    second = config(users=[{"name": "u", "user": {"token": "second"}}, {"name": "v", "user": {}}])
    both = {"KUBECONFIG": f"{HOME}/.kube/one:{HOME}/.kube/none:{HOME}/.kube/two"}

    access = discover(both, HOME, files(one=first, two=second))

    assert access == Access(server="https://first", token="secret")


def test_without_a_word_the_usual_file_is_read():
    assert discover({}, HOME, files(config=config())).token == "secret"


def test_without_any_file_the_person_is_told_what_to_set():
    with pytest.raises(HostError, match="set KUBECONFIG"):
        discover({}, HOME, files())


def test_a_file_that_may_not_be_read_is_not_taken_for_a_missing_one():
    def read(path):
        raise PermissionError(13, "Permission denied", str(path))

    with pytest.raises(HostError, match="Permission denied"):
        discover({}, HOME, read)


POD_FILES = {"ca.crt": b"CA", "token": b"pod-token\n", "namespace": b"team"}
IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def read_in_pod(path):
    if path.parent != Path("/var/run/secrets/kubernetes.io/serviceaccount"):
        raise FileNotFoundError(2, "No such file or directory", str(path))
    return POD_FILES[path.name]


def test_in_a_pod_the_files_that_kubernetes_put_there_are_used():
    expected = Access(server="https://10.96.0.1:443", ca=b"CA", token="pod-token", namespace="team", is_of_pod=True)

    assert discover(IN_POD, HOME, read_in_pod) == expected
    assert in_cluster(IN_POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, read_in_pod).server == "https://[fd00::1]:443"


def test_secrets_are_not_shown():
    shown = repr(loaded(config()))

    assert "10.0.0.1" in shown
    assert "secret" not in shown


def test_json_is_read_without_yaml():
    path = HOME / ".kube" / "config"

    assert from_json(path, files(config=json.dumps(config()).encode())).token == "secret"
    assert from_json(path, files(config=config())) is None


def test_a_command_that_has_its_access_starts_quickly():
    """What a cold start cannot afford is not imported."""
    heavy = ("httptools", "asyncio", "yaml", "msgspec", "jsonschema_rs", "cryptography", "logging")
    program = (
        "import sys, paceline.client.sync, paceline.client.rest_config;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
