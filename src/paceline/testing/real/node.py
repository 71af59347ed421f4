"""A real Kubernetes with one real node on this machine: what pods do there is what ours must do.

Beside the API server run the controllers, the scheduler, a kubelet with containerd and runc, CoreDNS and the
metrics server. It needs root and Debian's containerd (`tools/setup node`), and serves recordings only.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paceline.errors import HostError
from paceline.testing.real.image import write_archive
from paceline.testing.real.kube import RealKube, find_assets, real_kube, running

NODE = "node-1"
IMAGES = ("docker.io/library/busybox:latest", "docker.io/library/busybox:1.36")
PROGRAMS = ("kubelet", "kube-scheduler", "kube-controller-manager", "metrics-server", "coredns")

_PAUSE = "localhost/pause:1"
_BRIDGE = "plreal0"
_GATEWAY = "10.88.0.1"
_SUBNET = "10.88.0.0/16"
_CGROUP = "/paceline-real"
# What an aggregated server wants to know about its front proxy, which is none.
_HEADERS = ("allowed-names", "extra-headers-prefix", "group-headers", "username-headers")
_NAMESPACES = Path("/run/netns")
_LOG_LINKS = Path("/var/log/containers")
_START_SECONDS = 120.0
_END_SECONDS = 10.0
_POLL_SECONDS = 0.1
_APISERVER_FLAGS = ("--kubelet-preferred-address-types=InternalIP", "--enable-aggregator-routing=true")


@dataclass(frozen=True, slots=True, kw_only=True)
class RealNode:
    """A cluster whose pods really run."""

    kube: RealKube
    kubectl: Path
    home: Path

    def run(self, *args: str, stdin: str = "") -> str:
        """Run kubectl as the administrator; HostError when it fails."""
        command = (str(self.kubectl), f"--kubeconfig={self.kube.kubeconfig}", *args)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise HostError(f"{' '.join(args)}: {done.stderr}")
        return done.stdout

    def load(self, archive: Path) -> None:
        """Bring an image to the node."""
        _system(*_containerd_client(self.home), "images", "import", str(archive))


@contextmanager
def real_node(assets: Path) -> Iterator[RealNode]:
    """Run a fresh cluster with one node; it, its pods and its files end with the block."""
    _check(assets)
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="paceline-node-", ignore_cleanup_errors=True)))
        stack.callback(_unmount, home)
        kube = stack.enter_context(real_kube(assets, _APISERVER_FLAGS))
        node = RealNode(kube=kube, kubectl=assets / "kubectl", home=home)
        stack.enter_context(_bridge())
        stack.enter_context(_cgroups())
        stack.callback(_forget_pods, home, frozenset(_NAMESPACES.glob("cni-*")))
        stack.enter_context(_containerd(home))
        for name, flags in _control_flags(kube).items():
            stack.enter_context(running((str(assets / name), *flags), home / f"{name}.log"))
        _wait("the default service account is there", lambda: node.run("get", "serviceaccount", "default"))
        stack.enter_context(_names(node, assets))
        stack.enter_context(_kubelet(node, assets))
        _wait("the node is ready", lambda: _is_ready(node))
        stack.enter_context(_metrics(node, assets))
        yield node


def _check(assets: Path) -> None:
    if os.geteuid() != 0:
        raise HostError("a real node needs root")
    missing = [name for name in PROGRAMS if not os.access(assets / name, os.X_OK)]
    missing += [name for name in ("containerd", "runc", "ctr", "ip", "busybox") if shutil.which(name) is None]
    if missing:
        raise HostError(f"a real node lacks {', '.join(missing)}; type: tools/setup node")


@contextmanager
def _bridge() -> Iterator[None]:
    """Make the pods' network first: the kubelet must find its own address on the machine."""
    _system("ip", "link", "add", _BRIDGE, "type", "bridge")
    try:
        _system("ip", "address", "add", f"{_GATEWAY}/16", "dev", _BRIDGE)
        _system("ip", "link", "set", _BRIDGE, "up")
        yield
    finally:
        _system("ip", "link", "delete", _BRIDGE)


@contextmanager
def _containerd(home: Path) -> Iterator[None]:
    config = home / "containerd.toml"
    config.write_text(_CONTAINERD.format(home=home, pause=_PAUSE))
    networks = home / "cni"
    networks.mkdir()
    (networks / "10-bridge.conflist").write_text(json.dumps(_network(home)))
    environment = {"PATH": os.environ["PATH"]}
    command = (shutil.which("containerd") or "containerd", "--config", str(config))
    with running(command, home / "containerd.log", environment):
        control = _containerd_client(home)
        _wait("containerd answers", lambda: _system(*control, "version"))
        for names, starts in ((IMAGES, ("sh",)), ((_PAUSE,), ("sleep", "2147483647"))):
            archive = home / "image.tar"
            write_archive(archive, names, starts)
            _system(*control, "images", "import", str(archive))
            archive.unlink()
        try:
            yield
        finally:
            _end_containers(home)


def _containerd_client(home: Path) -> tuple[str, ...]:
    return ("ctr", "--address", str(home / "containerd.sock"), "--namespace", "k8s.io")


def _network(home: Path) -> dict[str, Any]:
    addresses = {"type": "host-local", "ranges": [[{"subnet": _SUBNET}]], "dataDir": str(home / "addresses")}
    bridge = {"type": "bridge", "bridge": _BRIDGE, "isGateway": True, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}


def _control_flags(kube: RealKube) -> dict[str, tuple[str, ...]]:
    home = kube.kubeconfig.parent
    common = (f"--kubeconfig={kube.kubeconfig}", "--leader-elect=false", "--secure-port=0")
    return {
        "kube-controller-manager": (
            *common,
            f"--service-account-private-key-file={home / 'apiserver.key'}",
            f"--root-ca-file={kube.ca_file}",
            "--controllers=*,-nodeipam,-route,-cloud-node-lifecycle",
        ),
        "kube-scheduler": common,
    }


@contextmanager
def _names(node: RealNode, assets: Path) -> Iterator[None]:
    """Serve the names of services and of the pods behind them, as in every cluster."""
    config = node.home / "Corefile"
    config.write_text(_COREFILE.format(address=_GATEWAY, kubeconfig=node.kube.kubeconfig))
    with running((str(assets / "coredns"), "-conf", str(config)), node.home / "coredns.log"):
        yield


@contextmanager
def _kubelet(node: RealNode, assets: Path) -> Iterator[None]:
    home = node.home
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": _GATEWAY,
        "port": _free_port(),
        "healthzPort": 0,
        "readOnlyPort": 0,
        # Only this machine and its pods reach the address, and nothing of it is kept.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": _CGROUP,
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{home / 'containerd.sock'}",
        "podLogsDir": str(home / "logs"),
        "volumePluginDir": str(home / "plugins"),
        "resolvConf": "",
        # The gateway itself: nothing here forwards service addresses, so DNS cannot have one.
        "clusterDNS": [_GATEWAY],
        "clusterDomain": "cluster.local",
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "nodeStatusUpdateFrequency": "2s",
        "syncFrequency": "5s",
    }
    (home / "kubelet.json").write_text(json.dumps(config))
    flags = (
        f"--config={home / 'kubelet.json'}",
        f"--kubeconfig={node.kube.kubeconfig}",
        f"--root-dir={home / 'kubelet'}",
        f"--cert-dir={home / 'kubelet-keys'}",
        f"--hostname-override={NODE}",
        f"--node-ip={_GATEWAY}",
    )
    with running((str(assets / "kubelet"), *flags), home / "kubelet.log", {"PATH": os.environ["PATH"]}):
        yield


@contextmanager
def _metrics(node: RealNode, assets: Path) -> Iterator[None]:
    """Serve metrics.k8s.io; there is no front-proxy certificate, so anonymous callers may read metrics."""
    port = _free_port()
    flags = (
        f"--kubeconfig={node.kube.kubeconfig}",
        f"--authentication-kubeconfig={node.kube.kubeconfig}",
        f"--authorization-kubeconfig={node.kube.kubeconfig}",
        "--authentication-tolerate-lookup-failure",
        f"--bind-address={_GATEWAY}",
        f"--secure-port={port}",
        f"--cert-dir={node.home / 'metrics-keys'}",
        "--kubelet-insecure-tls",
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-use-node-status-port",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=5s",
    )
    authority = node.kube.ca_file
    files = [f"--from-file={name}client-ca-file={authority}" for name in ("", "requestheader-")]
    literals = [f"--from-literal=requestheader-{name}=[]" for name in _HEADERS]
    node.run("create", "configmap", "extension-apiserver-authentication", "--namespace=kube-system", *files, *literals)
    with running((str(assets / "metrics-server"), *flags), node.home / "metrics-server.log"):
        node.run("apply", "-f", "-", stdin=_METRICS.format(address=_GATEWAY, port=port))
        yield


def _is_ready(node: RealNode) -> bool:
    template = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}{.spec.taints}'
    return node.run("get", "node", NODE, "-o", template) == "True"


def _wait(description: str, look: Callable[[], object]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with contextlib.suppress(HostError):
            if look() is not False:
                return
        if time.monotonic() > deadline:
            raise HostError(f"the real node did not start: waited {_START_SECONDS:.0f} s in vain until {description}")
        time.sleep(_POLL_SECONDS)


def _system(program: str, *args: str) -> None:
    """Run a program of the machine; HostError when it fails."""
    done = subprocess.run((shutil.which(program) or program, *args), capture_output=True, text=True, check=False)
    if done.returncode:
        raise HostError(f"{program} {' '.join(args)}: {done.stderr}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_GATEWAY, 0))
        return int(probe.getsockname()[1])


def _controllers() -> list[Path]:
    root = Path("/sys/fs/cgroup")
    return [root] if (root / "cgroup.controllers").exists() else [path for path in root.iterdir() if path.is_dir()]


@contextmanager
def _cgroups() -> Iterator[None]:
    tops = [controller / _CGROUP.strip("/") for controller in _controllers()]
    for top in tops:
        top.mkdir(exist_ok=True)
    try:
        yield
    finally:
        for top in tops:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()


def _forget_pods(home: Path, existing: frozenset[Path]) -> None:
    """Remove what lies outside our folder: the pods' network namespaces, and links to their logs."""
    for namespace in frozenset(_NAMESPACES.glob("cni-*")) - existing:
        _system("ip", "netns", "delete", namespace.name)
    for link in _LOG_LINKS.glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(str(home)):
            link.unlink()


def _end_containers(home: Path) -> None:
    """Kill what containerd started: shims outlive it by design, and containers outlive shims."""
    deadline = time.monotonic() + _END_SECONDS
    while (pids := _containers(home)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _containers(home: Path) -> list[int]:
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            is_shim = b"containerd-shim" in command and str(home).encode() in command
            if is_shim or (command and f"{_CGROUP}/".encode() in (entry / "cgroup").read_bytes()):
                pids.append(int(entry.name))
    return pids


def _unmount(home: Path) -> None:
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((path for path in points if path.startswith(str(home))), reverse=True):
        _system("umount", "--lazy", point)


_CONTAINERD = """version = 2
root = "{home}/containerd"
state = "{home}/run"
[grpc]
  address = "{home}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{home}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""

_COREFILE = """cluster.local {{
  bind {address}
  errors
  kubernetes cluster.local {{
    kubeconfig {kubeconfig}
  }}
}}
"""

_METRICS = """
apiVersion: v1
kind: Service
metadata: {{name: metrics-server, namespace: kube-system}}
spec: {{ports: [{{name: https, port: 443, targetPort: {port}}}]}}
---
apiVersion: v1
kind: Endpoints
metadata: {{name: metrics-server, namespace: kube-system}}
subsets: [{{addresses: [{{ip: {address}}}], ports: [{{name: https, port: {port}}}]}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1beta1.metrics.k8s.io}}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {{name: metrics-server, namespace: kube-system}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: read-metrics}}
rules:
  - {{apiGroups: [metrics.k8s.io], resources: [pods, nodes], verbs: [get, list]}}
  - {{nonResourceURLs: [/apis, /apis/*, /openapi/*], verbs: [get]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: read-metrics}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: read-metrics}}
subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: "system:anonymous"}}]
"""


def main() -> None:
    """Run a node until Ctrl-C, and say how to reach it."""
    assets = find_assets()
    if assets is None:
        sys.exit("there is no kube-apiserver; type: make kube")
    try:
        with real_node(assets) as node:
            sys.stdout.write(f"export KUBECONFIG={node.kube.kubeconfig}\n(Ctrl-C ends it)\n")
            sys.stdout.flush()
            signal.pause()
    except KeyboardInterrupt:
        sys.stdout.write("\n")
    except HostError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
