"""The programs of one real node: containerd with its images, the kubelet, kube-proxy, and the clean-up behind them.

In     a `NodeSite`: the node's name, addresses, folder, control group and, if it has one, its network namespace.
Out    context managers; what they started, mounted and made is gone when the block ends.
Never  knows of the control plane's programs, or of other nodes.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import HostError
from paceline.testing.real.image import write_archive
from paceline.testing.real.kube import Process, RealKube, running

IMAGES = ("docker.io/library/busybox:latest", "docker.io/library/busybox:1.36")

_PAUSE = "localhost/pause:1"
_NAMESPACES = Path("/run/netns")
_LOG_LINKS = Path("/var/log/containers")
_START_SECONDS = 120.0
_END_SECONDS = 10.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSite:
    """Where the programs of one node run."""

    name: str
    home: Path
    # The kubelet's own, which it must find on an interface.
    address: str
    # Of its pods, on a bridge that CNI makes if it does not exist.
    subnet: str
    bridge: str
    cgroup: str
    # Who answers for the names of services.
    dns: str
    kubelet_port: int
    # A network namespace of `ip netns`; empty for the machine's own network.
    namespace: str = ""
    # The registry whose images may be pulled over plain HTTP.
    registry: str = ""

    def inside(self, *command: str) -> tuple[str, ...]:
        """Return the command that runs in the network of this node; mounts and control groups stay the machine's."""
        if not self.namespace:
            return command
        return (shutil.which("nsenter") or "nsenter", f"--net={_NAMESPACES / self.namespace}", "--", *command)

    def load(self, archive: Path) -> None:
        """Bring an image to the node."""
        system(*self.containerd_client(), "images", "import", str(archive))

    def containerd_client(self) -> tuple[str, ...]:
        """Return the start of a `ctr` command for this node."""
        return ("ctr", "--address", str(self.home / "containerd.sock"), "--namespace", "k8s.io")


@contextmanager
def containerd(site: NodeSite) -> Iterator[None]:
    """Run containerd with the images of busybox and of the pause container."""
    config = site.home / "containerd.toml"
    mirror = _MIRROR.format(registry=site.registry) if site.registry else ""
    config.write_text(_CONTAINERD.format(home=site.home, pause=_PAUSE, mirror=mirror))
    networks = site.home / "cni"
    networks.mkdir()
    (networks / "10-bridge.conflist").write_text(json.dumps(_network(site)))
    command = site.inside(shutil.which("containerd") or "containerd", "--config", str(config))
    with running(command, site.home / "containerd.log", {"PATH": os.environ["PATH"]}):
        wait_until("containerd answers", lambda: system(*site.containerd_client(), "version"))
        for names, starts in ((IMAGES, ("sh",)), ((_PAUSE,), ("sleep", "2147483647"))):
            archive = site.home / "image.tar"
            write_archive(archive, names, starts)
            site.load(archive)
            archive.unlink()
        try:
            yield
        finally:
            end_containers(site)


def _network(site: NodeSite) -> dict[str, Any]:
    ipam: dict[str, Any] = {
        "type": "host-local",
        "ranges": [[{"subnet": site.subnet}]],
        "dataDir": str(site.home / "addresses"),
    }
    if site.namespace:
        ipam["routes"] = [{"dst": "0.0.0.0/0"}]
    bridge = {"type": "bridge", "bridge": site.bridge, "isGateway": True, "hairpinMode": True, "ipam": ipam}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}


@contextmanager
def kubelet(site: NodeSite, kube: RealKube, assets: Path) -> Iterator[Process]:
    """Run the kubelet; it lets everybody in, because only this machine and its pods reach the address."""
    home = site.home
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": site.address,
        "port": site.kubelet_port,
        "healthzPort": 0,
        "readOnlyPort": 0,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": site.cgroup,
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{home / 'containerd.sock'}",
        "podLogsDir": str(home / "logs"),
        "volumePluginDir": str(home / "plugins"),
        "resolvConf": "",
        "clusterDNS": [site.dns],
        "clusterDomain": "cluster.local",
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "nodeStatusUpdateFrequency": "2s",
        "syncFrequency": "5s",
        "serializeImagePulls": False,
    }
    (home / "kubelet.json").write_text(json.dumps(config))
    flags = (
        f"--config={home / 'kubelet.json'}",
        f"--kubeconfig={kube.kubeconfig}",
        f"--root-dir={home / 'kubelet'}",
        f"--cert-dir={home / 'kubelet-keys'}",
        f"--hostname-override={site.name}",
        f"--node-ip={site.address}",
    )
    command = site.inside(str(assets / "kubelet"), *flags)
    with running(command, home / "kubelet.log", {"PATH": os.environ["PATH"]}) as process:
        yield process


@contextmanager
def kube_proxy(site: NodeSite, kube: RealKube, assets: Path) -> Iterator[Process]:
    """Run kube-proxy, which forwards the addresses of services by nftables rules of the node's own network."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kube.kubeconfig)},
        "mode": "nftables",
        "hostnameOverride": site.name,
        "healthzBindAddress": f"{site.address}:10256",
        "metricsBindAddress": f"{site.address}:10249",
        # A network namespace may not set these.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    path = site.home / "kube-proxy.json"
    path.write_text(json.dumps(config))
    command = site.inside(str(assets / "kube-proxy"), f"--config={path}")
    with running(command, site.home / "kube-proxy.log", {"PATH": os.environ["PATH"]}) as process:
        yield process


@contextmanager
def cgroups(site: NodeSite) -> Iterator[None]:
    """Make the control group of the node's pods in every hierarchy."""
    tops = [hierarchy / site.cgroup.strip("/") for hierarchy in _hierarchies()]
    for top in tops:
        top.mkdir(exist_ok=True)
        # A cpuset group has no processors until they are written into it.
        for name in ("cpuset.cpus", "cpuset.mems"):
            with contextlib.suppress(OSError):
                (top / name).write_text((top.parent / name).read_text())
    try:
        yield
    finally:
        for top in tops:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()


def _hierarchies() -> list[Path]:
    root = Path("/sys/fs/cgroup")
    return [root] if (root / "cgroup.controllers").exists() else [path for path in root.iterdir() if path.is_dir()]


def pod_namespaces() -> frozenset[Path]:
    """Return the network namespaces of pods that exist."""
    return frozenset(_NAMESPACES.glob("cni-*"))


def forget_pods(home: Path, existing: frozenset[Path]) -> None:
    """Remove what lies outside our folder: the pods' network namespaces, and links to their logs."""
    for namespace in pod_namespaces() - existing:
        system("ip", "netns", "delete", namespace.name)
    for link in _LOG_LINKS.glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(str(home)):
            link.unlink()


def end_containers(site: NodeSite) -> None:
    """Kill every container of a node, as a loss of power would."""
    _end_containers(f"{site.home}/", (site.cgroup,))


def remove_leftovers(parent: Path, prefix: str, groups: tuple[str, ...]) -> None:
    """Remove what clusters that were killed have left: containers of these control groups, and folders with mounts."""
    _end_containers(f"{parent / prefix}", groups)
    for home in parent.glob(f"{prefix}*"):
        if home.is_dir():
            unmount(home)
            shutil.rmtree(home, ignore_errors=True)


def _end_containers(home: str, groups: tuple[str, ...]) -> None:
    """Kill what containerd started: shims outlive it by design, and containers outlive shims."""
    deadline = time.monotonic() + _END_SECONDS
    while (pids := _containers(home, groups)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _containers(home: str, groups: tuple[str, ...]) -> list[int]:
    """Return the processes of containers in control groups, and of shims whose folders begin with `home`."""
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            is_shim = b"containerd-shim" in command and home.encode() in command
            cgroups = (entry / "cgroup").read_bytes()
            if is_shim or (command and any(f"{group}/".encode() in cgroups for group in groups)):
                pids.append(int(entry.name))
    return pids


def unmount(home: Path) -> None:
    """Unmount everything below a folder."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((path for path in points if path.startswith(str(home))), reverse=True):
        system("umount", "--lazy", point)


def wait_until(description: str, look: Callable[[], object]) -> None:
    """Return once `look` returns anything but False; a HostError of it means not yet."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with contextlib.suppress(HostError):
            if look() is not False:
                return
        if time.monotonic() > deadline:
            raise HostError(f"the real node did not start: waited {_START_SECONDS:.0f} s in vain until {description}")
        time.sleep(_POLL_SECONDS)


def system(program: str, *args: str) -> None:
    """Run a program of the machine; HostError when it fails."""
    done = subprocess.run((shutil.which(program) or program, *args), capture_output=True, text=True, check=False)
    if done.returncode:
        raise HostError(f"{program} {' '.join(args)}: {done.stderr}")


_CONTAINERD = """version = 2
root = "{home}/containerd"
state = "{home}/run"
[grpc]
  address = "{home}/containerd.sock"
[ttrpc]
  address = "{home}/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{home}/opt"
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
{mirror}"""

_MIRROR = """  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."{registry}"]
    endpoint = ["http://{registry}"]
"""
