"""A real Kubernetes on this machine, with one node or with two: what pods do there is what ours must do.

In     the programs of `tools/setup node`, root, and Debian's containerd.
Out    a running cluster: API server, controllers, scheduler, kubelets, CoreDNS. With one node it has a metrics server;
       with two it has kube-proxy, a network namespace for each node, and a storage class that makes folders.
Never  leaves anything behind when the block ends.
"""

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from paceline.errors import HostError
from paceline.testing.real.kube import Process, RealKube, find_assets, real_kube, running
from paceline.testing.real.node_programs import (
    NodeSite,
    cgroups,
    containerd,
    end_containers,
    forget_pods,
    kube_proxy,
    kubelet,
    pod_namespaces,
    remove_leftovers,
    system,
    unmount,
    wait_until,
)

PROGRAMS = ("kubelet", "kube-scheduler", "kube-controller-manager", "coredns")
TWO_NODES = 2
# The address of the machine on the bridge that joins the nodes, and the registry that may listen there. It is of the
# range of the pods, in which no embedded cluster of this machine looks for its own.
JOINED = "10.244.0.1"
REGISTRY = f"{JOINED}:5000"
# Where the controller manager's own provisioner makes the folders of claims; both nodes see it.
# The path is compiled into kube-controller-manager.
CLAIMS_FOLDER = Path("/tmp/hostpath_pv")  # noqa: S108

# Held by the cluster of two nodes that runs, whose names are fixed; and where its folders begin.
_LOCK = Path(gettempdir(), "paceline-nodes.lock")
_HOME, _HOME_OF_TWO = "paceline-node-", "paceline-nodes-"
_BRIDGE = "plreal0"
_GATEWAY = "10.88.0.1"
_JOINT = "plreal1"
# What an aggregated server wants to know about its front proxy, which is none.
_HEADERS = ("allowed-names", "extra-headers-prefix", "group-headers", "username-headers")
_APISERVER_FLAGS = ("--kubelet-preferred-address-types=InternalIP", "--enable-aggregator-routing=true")
# What a kubelet sets for the whole machine when it starts.
_KERNEL_SETTINGS = tuple(
    Path("/proc/sys", name)
    for name in ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
)
# A lost node is noticed within seconds, and its pods are evicted soon, so that tests need not wait for minutes.
_GRACE_SECONDS = 20
TOLERATION_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class RealCluster:
    """A cluster whose pods really run."""

    kube: RealKube
    kubectl: Path
    home: Path
    sites: tuple[NodeSite, ...]
    kubelets: Mapping[str, Process] = field(default_factory=dict)

    def run(self, *args: str, stdin: str = "") -> str:
        """Run kubectl as the administrator; HostError when it fails."""
        command = (str(self.kubectl), f"--kubeconfig={self.kube.kubeconfig}", *args)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise HostError(f"{' '.join(args)}: {done.stderr}")
        return done.stdout

    def load(self, archive: Path) -> None:
        """Bring an image to every node."""
        for site in self.sites:
            site.load(archive)

    @contextmanager
    def cut_off(self, name: str) -> Iterator[None]:
        """Take a node off the network and freeze its kubelet; it is back after the block."""
        kubelet_process = self.kubelets[name]
        system("ip", "link", "set", _cable(name), "down")
        kubelet_process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            kubelet_process.send_signal(signal.SIGCONT)
            system("ip", "link", "set", _cable(name), "up")

    @contextmanager
    def powered_off(self, name: str) -> Iterator[None]:
        """Cut a node off and kill all that runs on it; its kubelet is back after the block."""
        (site,) = (site for site in self.sites if site.name == name)
        with self.cut_off(name):
            end_containers(site)
            yield


@contextmanager
def real_node(assets: Path) -> Iterator[RealCluster]:
    """Run a fresh cluster with one node in the machine's own network, for recordings."""
    with ExitStack() as stack:
        home = _home(stack, assets, _HOME, "metrics-server")
        kube = stack.enter_context(real_kube(assets, _APISERVER_FLAGS))
        _make_bridge(stack, _BRIDGE, f"{_GATEWAY}/16")
        site = NodeSite(
            name="node-1",
            home=_folder(home, "node-1"),
            address=_GATEWAY,
            subnet="10.88.0.0/16",
            bridge=_BRIDGE,
            cgroup="/paceline-real",
            dns=_GATEWAY,
            kubelet_port=_free_port(_GATEWAY),
        )
        cluster = RealCluster(kube=kube, kubectl=assets / "kubectl", home=home, sites=(site,))
        cluster = _start(stack, cluster, assets)
        stack.enter_context(_metrics(cluster, site.dns, assets))
        yield cluster


@contextmanager
def real_cluster(assets: Path, nodes: int = TWO_NODES) -> Iterator[RealCluster]:
    """Run a fresh cluster whose nodes have networks of their own, joined by a bridge; services have addresses."""
    with ExitStack() as stack:
        stack.enter_context(_alone())
        home = _home(stack, assets, _HOME_OF_TWO, "kube-proxy")
        _make_bridge(stack, _JOINT, f"{JOINED}/24")
        tolerations = [
            f"--default-{taint}-toleration-seconds={TOLERATION_SECONDS}" for taint in ("not-ready", "unreachable")
        ]
        kube = stack.enter_context(real_kube(assets, (*_APISERVER_FLAGS, *tolerations), address=JOINED))
        sites = tuple(_join(stack, _site(home, number), nodes) for number in range(1, nodes + 1))
        cluster = RealCluster(kube=kube, kubectl=assets / "kubectl", home=home, sites=sites, kubelets={})
        stack.callback(shutil.rmtree, CLAIMS_FOLDER, ignore_errors=True)
        cluster = _start(stack, cluster, assets)
        for site in sites:
            stack.enter_context(kube_proxy(site, kube, assets))
        cluster.run("apply", "-f", "-", stdin=_STORAGE_CLASS)
        yield cluster


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other cluster of two nodes runs on this machine, and remove what a killed one has left."""
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_leftovers(Path(gettempdir()), _HOME_OF_TWO, tuple(_cgroup(number) for number in range(1, TWO_NODES + 1)))
        for number in range(1, TWO_NODES + 1):
            if Path("/run/netns", _namespace(number)).exists():
                system("ip", "netns", "delete", _namespace(number))
        if Path("/sys/class/net", _JOINT).exists():
            system("ip", "link", "delete", _JOINT)
        yield


def _home(stack: ExitStack, assets: Path, prefix: str, *programs: str) -> Path:
    _check(assets, *programs)
    home = Path(stack.enter_context(TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)))
    stack.callback(unmount, home)
    return home


def _folder(home: Path, name: str) -> Path:
    folder = home / name
    folder.mkdir()
    return folder


def _check(assets: Path, *programs: str) -> None:
    if os.geteuid() != 0:
        raise HostError("a real node needs root")
    missing = [name for name in (*PROGRAMS, *programs) if not os.access(assets / name, os.X_OK)]
    missing += [name for name in ("containerd", "runc", "ctr", "ip", "nft", "busybox") if shutil.which(name) is None]
    if missing:
        raise HostError(f"a real node lacks {', '.join(missing)}; type: tools/setup node")


def _make_bridge(stack: ExitStack, name: str, address: str) -> None:
    """Make a bridge with an address of the machine: servers must find their own address when they start."""
    system("ip", "link", "add", name, "type", "bridge")
    stack.callback(system, "ip", "link", "delete", name)
    system("ip", "address", "add", address, "dev", name)
    system("ip", "link", "set", name, "up")


def _site(home: Path, number: int) -> NodeSite:
    name = f"node-{number}"
    return NodeSite(
        name=name,
        home=_folder(home, name),
        address=_address(number),
        subnet=f"10.244.{number}.0/24",
        bridge="cni0",
        cgroup=_cgroup(number),
        dns=JOINED,
        kubelet_port=10250,
        namespace=_namespace(number),
        registry=REGISTRY,
    )


def _address(number: int) -> str:
    return f"10.244.0.{10 + number}"


def _cgroup(number: int) -> str:
    return f"/paceline-real-{number}"


def _namespace(number: int) -> str:
    return f"paceline-node-{number}"


def _cable(name: str) -> str:
    return f"pl-{name}"


def _join(stack: ExitStack, site: NodeSite, nodes: int) -> NodeSite:
    """Make the network namespace of a node, with a cable to the bridge and routes to the pods of the other nodes."""
    system("ip", "netns", "add", site.namespace)
    stack.callback(system, "ip", "netns", "delete", site.namespace)
    cable = _cable(site.name)
    system("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", site.namespace)
    system("ip", "link", "set", cable, "master", _JOINT, "up")
    within = ("ip", "-n", site.namespace)
    system(*within, "address", "add", f"{site.address}/24", "dev", "eth0")
    for device in ("eth0", "lo"):
        system(*within, "link", "set", device, "up")
    system(*within, "route", "add", "default", "via", JOINED)
    system(*site.inside("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"))
    for number in range(1, nodes + 1):
        if (other := _address(number)) != site.address:
            system(*within, "route", "add", f"10.244.{number}.0/24", "via", other)
    system("ip", "route", "replace", site.subnet, "via", site.address)
    return site


def _start(stack: ExitStack, cluster: RealCluster, assets: Path) -> RealCluster:
    """Start everything but kube-proxy, and return when all nodes are ready."""
    kube, dns = cluster.kube, cluster.sites[0].dns
    stack.callback(forget_pods, cluster.home, pod_namespaces())
    for site in cluster.sites:
        stack.enter_context(cgroups(site))
        stack.enter_context(containerd(site))
    for name, flags in _control_flags(kube).items():
        stack.enter_context(running((str(assets / name), *flags), cluster.home / f"{name}.log"))
    wait_until("the default service account is there", lambda: cluster.run("get", "serviceaccount", "default"))
    stack.enter_context(_names(cluster, dns, assets))
    with _kernel_settings_kept():
        processes = {site.name: stack.enter_context(kubelet(site, kube, assets)) for site in cluster.sites}
        for site in cluster.sites:
            wait_until(f"{site.name} is ready", partial(_is_ready, cluster, site.name))
    return RealCluster(kube=kube, kubectl=cluster.kubectl, home=cluster.home, sites=cluster.sites, kubelets=processes)


@contextmanager
def _kernel_settings_kept() -> Iterator[None]:
    """Give the machine back its settings at the end of the block: others use it, too."""
    values = {path: path.read_text() for path in _KERNEL_SETTINGS}
    try:
        yield
    finally:
        for path, value in values.items():
            if path.read_text() != value:
                path.write_text(value)


def _control_flags(kube: RealKube) -> dict[str, tuple[str, ...]]:
    home = kube.kubeconfig.parent
    common = (f"--kubeconfig={kube.kubeconfig}", "--leader-elect=false", "--secure-port=0")
    return {
        "kube-controller-manager": (
            *common,
            f"--service-account-private-key-file={home / 'apiserver.key'}",
            f"--root-ca-file={kube.ca_file}",
            "--controllers=*,-nodeipam,-route,-cloud-node-lifecycle",
            "--enable-hostpath-provisioner",
            f"--node-monitor-grace-period={_GRACE_SECONDS}s",
        ),
        "kube-scheduler": common,
    }


@contextmanager
def _names(cluster: RealCluster, address: str, assets: Path) -> Iterator[None]:
    """Serve the names of services and of the pods behind them, as in every cluster."""
    config = cluster.home / "Corefile"
    config.write_text(_COREFILE.format(address=address, kubeconfig=cluster.kube.kubeconfig))
    with running((str(assets / "coredns"), "-conf", str(config)), cluster.home / "coredns.log"):
        yield


@contextmanager
def _metrics(cluster: RealCluster, address: str, assets: Path) -> Iterator[None]:
    """Serve metrics.k8s.io; there is no front-proxy certificate, so anonymous callers may read metrics."""
    port = _free_port(address)
    flags = (
        f"--kubeconfig={cluster.kube.kubeconfig}",
        f"--authentication-kubeconfig={cluster.kube.kubeconfig}",
        f"--authorization-kubeconfig={cluster.kube.kubeconfig}",
        "--authentication-tolerate-lookup-failure",
        f"--bind-address={address}",
        f"--secure-port={port}",
        f"--cert-dir={cluster.home / 'metrics-keys'}",
        "--kubelet-insecure-tls",
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-use-node-status-port",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=5s",
    )
    authority = cluster.kube.ca_file
    files = [f"--from-file={name}client-ca-file={authority}" for name in ("", "requestheader-")]
    literals = [f"--from-literal=requestheader-{name}=[]" for name in _HEADERS]
    cluster.run(
        "create", "configmap", "extension-apiserver-authentication", "--namespace=kube-system", *files, *literals
    )
    with running((str(assets / "metrics-server"), *flags), cluster.home / "metrics-server.log"):
        cluster.run("apply", "-f", "-", stdin=_METRICS.format(address=address, port=port))
        yield


def _is_ready(cluster: RealCluster, name: str) -> bool:
    template = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}{.spec.taints}'
    return cluster.run("get", "node", name, "-o", template) == "True"


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


_COREFILE = """cluster.local {{
  bind {address}
  errors
  kubernetes cluster.local {{
    kubeconfig {kubeconfig}
    ttl 5
  }}
}}
"""

_STORAGE_CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: folders
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/host-path
reclaimPolicy: Delete
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
    """Run a cluster until Ctrl-C, and say how to reach it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--nodes", type=int, choices=(1, TWO_NODES), default=1, help="number of nodes (default: 1)")
    nodes = parser.parse_args().nodes
    assets = find_assets()
    if assets is None:
        sys.exit("there is no kube-apiserver; type: make kube")
    try:
        with real_node(assets) if nodes == 1 else real_cluster(assets) as cluster:
            sys.stdout.write(f"export KUBECONFIG={cluster.kube.kubeconfig}\n(Ctrl-C ends it)\n")
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except HostError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
