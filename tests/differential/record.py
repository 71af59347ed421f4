"""Writes down anew what kubectl, Helm and the Python clients ask of a real kube-apiserver: `make traffic`."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from paceline.apiserver.paths import find_target, split_path
from paceline.apiserver.status_errors import StatusError
from paceline.client.kubeconfig import load
from paceline.cluster.pki import prepare_keys
from paceline.host.effects import real_world
from paceline.settings import Settings
from paceline.testing.fixed_kinds import full_scheme
from paceline.testing.real.kube import find_assets
from paceline.testing.traffic_recorder import recorder
from tests.clients.scenario import job, pod
from tests.differential.servers import the_real_one

HERE = Path(__file__).parent
CHART = HERE.parent / "clients" / "chart"
# No other word of a recording looks like this, so it can be replaced everywhere.
NAMESPACE = "recorded-here"

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "p"}, "ports": [{"port": 80}]},
}
KUBECTL = (
    ("create -f -", [job("j"), pod("p"), CONFIG_MAP, SERVICE]),
    ("create -f -", [job("j")]),
    ("get pods", None),
    ("get pods,gj,configmaps,services", None),
    ("get all", None),
    ("get gj j -o yaml", None),
    ("get gj j -o wide", None),
    ("get pod p -o json", None),
    ("get pod nope", None),
    ("get nosuchkind", None),
    ("get pods -l app=p --show-labels", None),
    ("get pods --field-selector=status.phase=Pending", None),
    ("get configmaps --chunk-size=1", None),
    ("get pods -w --output-watch-events --request-timeout=1s", None),
    ("describe pod p", None),
    ("describe gj j", None),
    ("describe service web", None),
    ("label pod p more=yes", None),
    ("label gj j more=yes", None),
    ("annotate configmap settings note=hello", None),
    ("apply -f -", [CONFIG_MAP | {"data": {"a": "2"}}]),
    ("apply -f -", [CONFIG_MAP | {"data": {"a": "3"}}]),
    ("apply --server-side -f -", [CONFIG_MAP | {"data": {"a": "4"}}]),
    ("apply --server-side --force-conflicts -f -", [CONFIG_MAP | {"data": {"a": "4"}}]),
    ("apply --dry-run=server -f -", [job("dry")]),
    ("diff -f -", [CONFIG_MAP | {"data": {"a": "5"}}]),
    ("apply -f -", [job("applied")]),
    ('patch gj j --type=merge -p {"metadata":{"labels":{"x":"y"}}}', None),
    ('patch pod p -p {"metadata":{"labels":{"x":"y"}}}', None),
    ('patch configmap settings --type=json -p [{"op":"add","path":"/data/b","value":"c"}]', None),
    ("replace -f -", [CONFIG_MAP | {"data": {"z": "1"}}]),
    ("wait --for=jsonpath={.metadata.name}=j gj/j --timeout=5s", None),
    ("explain gj.spec.replicaSpecs", None),
    ("explain pod.spec", None),
    ("api-resources", None),
    ("api-versions", None),
    ("auth can-i create pods", None),
    ("auth can-i --list", None),
    ("auth whoami", None),
    ("events", None),
    ("get events", None),
    ("version", None),
    ("cluster-info", None),
    ("create configmap lit --from-literal=a=b", None),
    ("create secret generic lit --from-literal=a=b", None),
    ("create namespace recorded-here-too", None),
    ("delete namespace recorded-here-too --wait=false", None),
    ("set image pod/p main=python:3.12", None),
    ("delete configmap settings lit", None),
    ("delete gj j --cascade=foreground --wait=false", None),
    ("delete pod p --grace-period=0 --force", None),
    ("delete pod nope", None),
    ("delete pods --all", None),
    ("delete services -l nothing=here", None),
)
HELM = (
    f"install hi {CHART} --no-hooks --wait --timeout=20s",
    "list",
    "status hi",
    "get all hi",
    f"upgrade hi {CHART} --no-hooks --set greeting=bye",
    "history hi",
    "rollback hi 1 --no-hooks",
    f"template x {CHART} --validate",
    f"install dry {CHART} --dry-run=server",
    "uninstall hi --no-hooks",
    "status hi",
)


def run(program: str, args: list[str], kubeconfig: Path, stdin: str = "") -> None:
    found = shutil.which(program)
    if found is None:
        raise SystemExit(f"{program} is not on PATH; `make traffic` puts it there")
    homes = {f"HELM_{name}_HOME": str(kubeconfig.parent / name) for name in ("CACHE", "CONFIG", "DATA")}
    environment = {**os.environ, **homes, "KUBECONFIG": str(kubeconfig), "HELM_NAMESPACE": NAMESPACE}
    # How it ends is its own business: refusals are recorded, too.
    subprocess.run([found, *args], env=environment, input=stdin, text=True, capture_output=True, check=False)


def kubectl(kubeconfig: Path) -> None:
    cache = ["--cache-dir", str(kubeconfig.parent / "cache")]
    for command, documents in KUBECTL:
        stdin = "".join(f"---\n{json.dumps(each)}\n" for each in documents or ())
        run("kubectl", [*cache, *command.split()], kubeconfig, stdin)


def helm(kubeconfig: Path) -> None:
    for command in HELM:
        run("helm", command.split(), kubeconfig)


def official(kubeconfig: Path) -> None:
    from kubernetes import client, config, watch

    with config.new_client_from_config(str(kubeconfig)) as api:
        core, jobs = client.CoreV1Api(api), client.CustomObjectsApi(api)
        core.create_namespaced_pod(NAMESPACE, pod("p"))
        for _ in watch.Watch().stream(core.list_namespaced_pod, NAMESPACE, timeout_seconds=1):
            break
        core.patch_namespaced_pod("p", NAMESPACE, {"metadata": {"labels": {"a": "b"}}})
        there = core.read_namespaced_pod("p", NAMESPACE)
        there.metadata.labels["more"] = "yes"
        core.replace_namespaced_pod("p", NAMESPACE, there)
        core.create_namespaced_config_map(NAMESPACE, CONFIG_MAP)
        read = core.read_namespaced_config_map("settings", NAMESPACE)
        core.replace_namespaced_config_map("settings", NAMESPACE, read)
        core.delete_namespaced_pod("p", NAMESPACE)
        where = {
            "group": "batch.tensorstack.dev",
            "version": "v1beta1",
            "namespace": NAMESPACE,
            "plural": "genericjobs",
        }
        jobs.create_namespaced_custom_object(**where, body=job("j"))
        jobs.patch_namespaced_custom_object(**where, name="j", body={"metadata": {"labels": {"a": "b"}}})
        jobs.patch_namespaced_custom_object_status(**where, name="j", body={"status": {"phase": "Running"}})
        jobs.list_namespaced_custom_object(**where, limit=1)
        jobs.delete_namespaced_custom_object(**where, name="j", propagation_policy="Background")
        core.list_namespaced_event(NAMESPACE)
        client.VersionApi(api).get_code()


def kr8s_(kubeconfig: Path) -> None:
    import kr8s
    from kr8s.objects import ConfigMap, Pod

    api = kr8s.api(kubeconfig=str(kubeconfig))
    made = Pod(pod("p") | {"metadata": {"name": "p", "namespace": NAMESPACE}}, api=api)
    made.create()
    made.exists()
    made.patch({"metadata": {"labels": {"a": "b"}}})
    made.label(more="yes")
    made.annotate(note="hello")
    made.refresh()
    list(api.get("pods", namespace=NAMESPACE, label_selector="more=yes"))
    for _ in api.watch("pods", namespace=NAMESPACE):
        break
    list(api.get("gj", namespace=NAMESPACE))
    api.version()
    settings = ConfigMap(CONFIG_MAP | {"metadata": {"name": "settings", "namespace": NAMESPACE}}, api=api)
    settings.create()
    settings.delete()
    made.delete()


def lightkube(kubeconfig: Path) -> None:
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap, Pod
    from lightkube.types import CascadeType, PatchType

    api = Client(config=KubeConfig.from_file(kubeconfig), namespace=NAMESPACE, field_manager="lightkube")
    api.create(Pod.from_dict(pod("p")))
    api.patch(Pod, "p", {"metadata": {"labels": {"a": "b"}}}, patch_type=PatchType.STRATEGIC)
    for _ in api.watch(Pod, server_timeout=1):
        break
    for manager, value in (("one", "1"), ("two", "2")):
        mine = ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="applied"), data={"a": value})
        with contextlib.suppress(ApiError):
            api.apply(mine, field_manager=manager)
    found = api.get(ConfigMap, "applied")
    found.data["b"] = "3"
    api.replace(found)
    list(api.list(ConfigMap, labels={"no": "such"}, chunk_size=1))
    with contextlib.suppress(ApiError):
        api.get(Pod, "nope")
    api.delete(Pod, "p", cascade=CascadeType.BACKGROUND, grace_period=0)
    api.deletecollection(ConfigMap)


CLIENTS: dict[str, Callable[[Path], None]] = {
    "kubectl": kubectl,
    "helm": helm,
    "kubernetes": official,
    "kr8s": kr8s_,
    "lightkube": lightkube,
}


def kubeconfig_for(url: str, authority: bytes, folder: Path) -> Path:
    (folder / "authority.crt").write_bytes(authority)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "r", "cluster": {"server": url, "certificate-authority": str(folder / "authority.crt")}}],
        "users": [{"name": "r", "user": {"token": "any"}}],
        "contexts": [{"name": "r", "context": {"cluster": "r", "user": "r", "namespace": NAMESPACE}}],
        "current-context": "r",
    }
    path = folder / "recorded"
    path.write_text(json.dumps(config))
    return path


def is_served(path: str) -> bool:
    """Tell whether we have what a request is about: against our server, the client would not ask for the rest."""
    parts, scheme = split_path(path.encode()), full_scheme()
    if parts[:1] == ("apis",) and len(parts) == 3:
        return any((kind.group, kind.version) == parts[1:] for kind in scheme.resources)
    if len(parts) <= {"api": 2, "apis": 3}.get(parts[0] if parts else "", len(parts)):
        return True
    try:
        find_target(scheme, parts)
    except StatusError:
        return False
    return True


def record(name: str, assets: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="paceline-record-") as temporary, the_real_one(assets) as real:
        folder = Path(temporary)
        settings = Settings(home=folder)
        keys = prepare_keys(settings, real_world(), 1)
        authority = load(settings.kubeconfig, Path.read_bytes).ca
        with recorder(real, certificate=keys.certificate, key=keys.key) as (url, recording):
            kubeconfig = kubeconfig_for(url, authority, folder)
            run("kubectl", ["create", "namespace", NAMESPACE], kubeconfig)
            recording.forget()
            CLIENTS[name](kubeconfig)
    rows = [row for row in recording.steps() if is_served(row["path"])]
    text = json.dumps(rows, indent=1).replace(NAMESPACE, "$ns")
    (HERE / "traffic" / f"{name}.json").write_text(text + "\n")
    print(f"{name}: {len(rows)} requests")  # noqa: T201


def main() -> None:
    assets = find_assets()
    if assets is None:
        raise SystemExit("there is no kube-apiserver; type `make kube`")
    for name in sys.argv[1:] or CLIENTS:
        record(name, assets)


if __name__ == "__main__":
    main()
