"""TensorBoard and Notebook as pods: what their programs are told."""

import subprocess
import sys
from pathlib import Path

import pytest

from paceline.apimachinery.meta import Object
from paceline.kinds import registry
from paceline.kinds.kind_types import CannotRun
from paceline.model.interactive import InteractiveWorkload
from paceline.plan.interactive.manifests import pod_manifest
from tests.unit.kinds.manifests import notebook, pytorch, replica, tensorboard

BOARD = "/t9k/tensorboards/projects/default/name"
DESK = "/t9k/notebooks/projects/default/name"


def opened(obj: Object) -> InteractiveWorkload:
    obj["metadata"] |= {"namespace": "default", "uid": "1"}
    return registry.expand_service(obj)


def container(window: InteractiveWorkload, index: int = 0) -> Object:
    found: Object = window.template["spec"]["containers"][index]
    return found


def env(found: Object) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in found["env"]}


def option(found: Object, name: str) -> str:
    (value,) = [each.removeprefix(f"--{name}=") for each in found["command"] if each.startswith(f"--{name}=")]
    return str(value)


def in_bucket(*uris: str) -> Object:
    return {"s3": {"secretRef": {"name": "keys"}, "uri": list(uris)}}


# What is written, and what TensorBoard is told of it.
PLACES = {
    "a folder of a claim": ({"logDir": {"pvc": [{"name": "m", "subPath": ["log"]}]}}, "--logdir=/t9k/pvc/m/log"),
    "dots and slashes that mean nothing": (
        {"logDir": {"pvc": [{"name": "m", "subPath": ["./log/"]}]}},
        "--logdir=/t9k/pvc/m/log",
    ),
    "a whole claim": ({"logDir": {"pvc": [{"name": "m"}]}}, "--logdir=/t9k/pvc/m"),
    "a file set": ({"logDir": {}, "trainingLogFilesets": ["t9k://pvc/m/a/b/"]}, "--logdir=/t9k/pvc/m/a/b"),
    "a place that is written twice": (
        {"logDir": {"pvc": [{"name": "m", "subPath": ["log"]}]}, "trainingLogFilesets": ["t9k://pvc/m/log"]},
        "--logdir=/t9k/pvc/m/log",
    ),
    "a bucket": ({"logDir": in_bucket("s3://b/log/")}, "--logdir=s3://b/log"),
    "a bucket of a file set": ({"logDir": {}, "trainingLogFilesets": ["t9k://minio/keys/b"]}, "--logdir=s3://b"),
    "several folders": (
        {"logDir": {"pvc": [{"name": "m", "subPath": ["a", "b:c"]}]}},
        "--logdir_spec=m/a:/t9k/pvc/m/a,m/b-c:/t9k/pvc/m/b:c",
    ),
    "a claim and a bucket": (
        {"logDir": {"pvc": [{"name": "m"}], **in_bucket("s3://b/log")}},
        "--logdir_spec=m:/t9k/pvc/m,b/log:s3://b/log",
    ),
    "what Kubernetes would expand": (
        {"logDir": {"pvc": [{"name": "m", "subPath": ["$(HOME)"]}]}},
        "--logdir=/t9k/pvc/m/$$(HOME)",
    ),
}


@pytest.mark.parametrize(("spec", "told"), PLACES.values(), ids=PLACES)
def test_tensorboard_is_told_of(spec: Object, told: str) -> None:
    assert container(opened(tensorboard(**spec)))["command"][1] == told


def test_claims_are_seen_and_cannot_be_written() -> None:
    logs = {"pvc": [{"name": "m", "subPath": ["a", "b"]}, {"name": "n"}]}
    window = opened(tensorboard(logDir=logs))

    pod = window.template["spec"]
    assert [each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"]] == ["m", "n"]
    mounts = pod["containers"][0]["volumeMounts"]
    assert [(each["mountPath"], each["readOnly"]) for each in mounts] == [("/t9k/pvc/m", True), ("/t9k/pvc/n", True)]


def test_the_keys_of_buckets_come_from_their_secrets() -> None:
    window = opened(tensorboard(logDir=in_bucket("s3://b/log"), trainingLogFilesets=["t9k://minio/more/c"]))

    assert container(window)["envFrom"] == [{"secretRef": {"name": name}} for name in ("more", "keys")]


def test_a_tensorboard_lies_at_the_root_and_is_seen_at_its_pods_address_only() -> None:
    window = opened(tensorboard(image="tb:1", idleSeconds=7))

    told = container(window)
    assert told["image"] == "tb:1"
    assert not [word for word in told["command"] if "prefix" in word]
    assert (option(told, "host"), option(told, "port")) == ("$(POD_IP)", "6006")
    assert (window.url, window.port, window.idle_seconds) == (f"{BOARD}/{window.name}/", 6006, 7)
    assert told["readinessProbe"]["httpGet"]["path"] == "/"
    assert window.service_type == "ClusterIP"


# What TensorBoard does with its first page, as far as its start may change it.
TENSORBOARD = {
    "__init__.py": "",
    "backend/__init__.py": "",
    "backend/http_util.py": """
class Respond:
    def __init__(self, content, content_encoding):
        self.content, self.headers = content, {"Content-Encoding": content_encoding, "Expires": "0"}
""",
    "main.py": """
import sys
from tensorboard.backend import http_util
def run_main():
    for encoding in ("identity", "gzip"):
        answer = http_util.Respond("page", content_encoding=encoding)
        print(answer.content, answer.headers, sys.argv[1:])
    return 7
""",
}


def test_behind_the_service_proxy_a_tensorboard_does_not_say_that_a_page_has_no_encoding(tmp_path: Path) -> None:
    for name, text in TENSORBOARD.items():
        path = tmp_path / "tensorboard" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    window = opened(tensorboard(logDir={"pvc": [{"name": "m"}]}))
    _, *arguments = window.proxied_command

    ran = subprocess.run(
        (sys.executable, *arguments), env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )

    options = container(window)["command"][1:]
    assert (ran.returncode, ran.stderr) == (7, "")
    assert ran.stdout.splitlines() == [
        f"page {{'Expires': '0'}} {options}",
        f"page {{'Content-Encoding': 'gzip', 'Expires': '0'}} {options}",
    ]


def test_only_a_tensorboard_behind_the_service_proxy_has_the_other_command() -> None:
    owner = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "1"}
    board, desk = opened(tensorboard()), opened(notebook())

    commands = [
        pod_manifest(window, owner=owner, is_proxied=is_proxied)["spec"]["containers"][0]["command"]
        for window in (board, desk)
        for is_proxied in (False, True)
    ]

    embedded, proxied, *others = commands
    assert embedded == container(board)["command"]
    assert proxied == list(board.proxied_command)
    assert others == [container(desk)["command"]] * 2


def test_who_reaches_a_tensorboard_may_change_and_its_pod_stays() -> None:
    inside, outside = opened(tensorboard()), opened(tensorboard(serviceType="LoadBalancer"))

    assert (inside.service_type, outside.service_type) == ("ClusterIP", "LoadBalancer")
    assert inside.digest == outside.digest


def test_logs_on_the_web_are_said_not_to_be_read() -> None:
    with pytest.raises(CannotRun, match="copy them to a claim"):
        opened(tensorboard(logDir={"http": {"url": ["https://example.com/log"]}}))


def desk(*volumes: Object, main: Object | None = None, **spec: object) -> InteractiveWorkload:
    """A notebook whose author leaves its program to us, but for what `main` says."""
    pod = {"containers": [{"name": "notebook", "image": "jupyter", **(main or {})}], "volumes": list(volumes)}
    return opened(notebook(template={"spec": pod}, **spec))


WORKING = [{"name": "data", "mountPath": "/t9k/mnt/"}]


def test_jupyterlab_is_at_home_in_the_claim() -> None:
    window = desk({"name": "data", "emptyDir": {}}, main={"volumeMounts": WORKING})

    told = container(window)
    assert told["command"][4:6] == ["jupyter", "lab"]
    # The page does not hold the token: it would send it where proxies expect that of the cluster.
    assert told["command"][3] == f"{env(told)['JUPYTER_CONFIG_PATH']}/labconfig"
    assert option(told, "ServerApp.root_dir") == told["workingDir"] == env(told)["HOME"] == "/t9k/mnt"
    assert option(told, "ServerApp.base_url") == f"{env(told)['NB_PREFIX']}/" == f"{DESK}/{window.name}/"
    assert option(told, "ServerApp.ip") == "$(POD_IP)"
    assert window.url == f"{DESK}/{window.name}/lab"
    assert window.template["spec"]["restartPolicy"] == "OnFailure"


def test_the_token_is_a_file_and_not_below_the_home() -> None:
    window = desk({"name": "data", "emptyDir": {}}, main={"volumeMounts": WORKING})

    told, pod = container(window), window.template["spec"]
    (volume,) = [each for each in pod["volumes"] if each["name"] != "data"]
    (mount,) = [each for each in told["volumeMounts"] if each["name"] == volume["name"]]
    assert volume["secret"]["secretName"] == window.secret
    assert env(told)["JUPYTER_TOKEN_FILE"] == f"{mount['mountPath']}/token"
    assert not env(told)["JUPYTER_RUNTIME_DIR"].startswith("/t9k/mnt")
    assert window.has_token


def test_unused_kernels_and_the_server_end_by_themselves() -> None:
    idle, never = container(desk(idleSeconds=100)), container(desk(idleSeconds=0))

    assert option(idle, "ServerApp.shutdown_no_activity_timeout") == "100"
    assert option(idle, "MappingKernelManager.cull_idle_timeout") == "100"
    assert not [each for each in never["command"] if "cull" in each or "shutdown" in each]


def test_an_authors_own_program_stays_and_is_told_what_ours_would_be() -> None:
    main = {"command": ["start"], "ports": [{"containerPort": 9000}], "env": [{"name": "HOME", "value": "/mine"}]}
    window = desk(main=main)

    told = container(window)
    assert (told["command"], told["ports"], window.port) == (["start"], main["ports"], 9000)
    assert told["readinessProbe"]["tcpSocket"] == {"port": 9000}
    assert env(told)["HOME"] == "/mine"
    assert env(told)["NB_PREFIX"] == f"{DESK}/{window.name}"


def test_gpus_are_hidden_from_a_notebook_that_asked_for_none() -> None:
    some = {"resources": {"limits": {"nvidia.com/gpu": 1}}}

    assert env(container(desk()))["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in env(container(desk(main=some)))


def test_the_notebook_container_is_found_by_its_name() -> None:
    pod = {"spec": {"containers": [{"name": "beside", "image": "a"}, {"name": "notebook", "image": "b"}]}}
    window = opened(notebook(template=pod))

    assert "command" not in container(window, 0)
    assert container(window, 1)["command"][4] == "jupyter"


def test_rstudio_is_said_not_to_be_run() -> None:
    with pytest.raises(CannotRun, match="only JupyterLab"):
        opened(notebook(type="RStudio"))


def test_only_what_needs_another_pod_makes_another_digest() -> None:
    same = {opened(tensorboard(**more)).digest for more in ({}, {"suspend": True}, {"idleSeconds": 5})}
    other = opened(tensorboard(image="another")).digest

    assert len(same) == 1
    assert other not in same


NAMES = {
    "a dot": ("a.b", 'did you mean "a-b"?'),
    "too long": ("a" * 56, "must have at most 55 characters"),
    "none": ("", "set a name"),
}


@pytest.mark.parametrize(("name", "hint"), NAMES.values(), ids=NAMES)
def test_a_name_is_refused_for(name: str, hint: str) -> None:
    obj = tensorboard()
    obj["metadata"]["name"] = name

    (fault,) = registry.service_faults(obj)
    assert (fault.path, hint in fault.hint) == ("metadata.name", True)


def test_the_longest_name_of_a_jobs_tensorboard_is_one() -> None:
    """Members with the shortest names there are leave the most room for that of their job."""
    longest = pytorch(replicaSpecs=[replica("w", replicas=1)])
    longest["metadata"] |= {"name": "a" * 48, "uid": "1"}
    board = tensorboard(name=registry.stem_of(longest))

    assert registry.faults(longest) == registry.service_faults(board) == ()
    longest["metadata"]["name"] += "a"
    assert registry.faults(longest)
