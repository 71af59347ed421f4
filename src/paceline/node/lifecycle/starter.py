"""Start one container: compute its sandbox, fill its folder, and hand it to a shim."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from paceline.apimachinery.meta import Key, Object, name_of, namespace_of, uid_of
from paceline.apimachinery.name_validation import label_problem
from paceline.apimachinery.pods import containers_of
from paceline.client.interface import Cluster
from paceline.effects import Effects
from paceline.node import devices
from paceline.node.devices import Devices
from paceline.node.host_info import MEMORY_OWNER, CannotStart, Folders, Host
from paceline.node.images import Images
from paceline.node.lifecycle.state_files import MESSAGE, attempt_numbers
from paceline.node.lifecycle.termination import stop_signal
from paceline.node.logs.archive import LogArchive
from paceline.node.network.network import Networks, has_dns_config, resolv_conf_text
from paceline.node.network.pod_hosts import Hosts, sandbox_failed, uts_hostname
from paceline.node.runtime import cgroup_limits, sandbox, shim
from paceline.node.runtime.confinement import capabilities_of, confinement_of, is_private, path_in_sandbox, user_of
from paceline.node.runtime.env import CONFIG_ERROR, command_of, env_of
from paceline.node.runtime.sandbox import ContainerConfig, mount_parents_of
from paceline.node.volumes.projection import FAILED
from paceline.node.volumes.references import Sources, TokenCache, read_sources
from paceline.node.volumes.setup import make_sub_path, make_volume
from paceline.node.volumes.volumes import (
    Mounts,
    PodVolume,
    VolumeLookup,
    mount_failed,
    mounted_volumes,
    mounts_of,
    volume_of,
)

NOT_CREATED = "CreateContainerError"
# The folder of an attempt in which subPaths are mounted, where the agent itself may not mount.
BINDS = "binds"
# The package that contains a program, where its name differs.
PACKAGES = {
    "accelerate": "Accelerate",
    "colossalai": "ColossalAI",
    "deepspeed": "DeepSpeed",
    "mpirun": "Open MPI",
    "tensorboard": "TensorBoard",
    "torchrun": "PyTorch",
}
SHARED_PROCESSES = (
    "shareProcessNamespace is not supported: every container has its own PID namespace; remove the field, or run the "
    "processes that belong together in one container"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """Starts containers."""

    cluster: Cluster
    world: Effects
    host: Host
    folders: Folders
    hosts: Hosts
    images: Images
    claims: Mapping[Key, Object]
    volumes: Mapping[Key, Object]
    # Called for every container, so that the agent need not be restarted once bubblewrap is installed.
    find_sandbox: Callable[[], str | None]
    devices: Devices
    archive: LogArchive
    tokens: TokenCache
    # None where pods share the machine's network.
    networks: Networks | None = None
    # None where the agent may not mount anything.
    mounts: Mounts | None = None

    async def start(self, pod: Object, container: Object, restarts: int, sources: Sources) -> str:
        """Start an attempt of a container, wait until its program runs or has failed, and return its environment note.

        `sources` comes from `prepare`. CannotStart says what is missing.
        """
        try:
            return await self._start(pod, container, restarts, sources)
        except OSError as error:
            # Most often a full disk: the pod reports it, and is retried.
            raise CannotStart(NOT_CREATED, self._describe(error)) from error

    async def _start(self, pod: Object, container: Object, restarts: int, sources: Sources) -> str:
        program = self.find_sandbox() if self.host.has_sandbox else ""
        if program is None:
            hint = f"install it with: {self.host.install_sandbox}"
            raise CannotStart("SandboxMissing", f"containers need bubblewrap, which is not installed; {hint}")
        self.devices.assign(pod, container)
        config = self._config(pod, container, sources=sources, restarts=restarts)
        program_intent = self._program_intent(config, program)
        network = await self._network(pod)
        self._fill(pod, config)
        folder = config.message.parent
        # Not synced: when a power cut loses it, the start did not happen either.
        intent = self._intent(pod, container, config) | program_intent | {"network": network}
        self.world.files.overwrite(folder / shim.INTENT, shim.encode(intent), 0o600)
        await self.world.processes.start(folder)
        self._remove_older(uid_of(pod), str(container["name"]), restarts)
        return config.environment.note

    async def prepare(self, pod: Object) -> Sources:
        """Set up the volumes of a pod before its first container starts, and return the objects that they refer to.

        CannotStart says what is missing.
        """
        uts_hostname(pod)
        if pod["spec"].get("shareProcessNamespace") and len(containers_of(pod)) > 1:
            raise sandbox_failed(SHARED_PROCESSES)
        sources = await self._read_and_connect(pod)
        lookup = self.volume_lookup(sources)
        pod = self._with_addresses(pod)
        messages: list[str] = []
        for index, spec in mounted_volumes(pod):
            try:
                volume = volume_of(pod, index, spec, lookup)
                self._refuse_private(spec, volume)
                await self._mount(volume)
                make_volume(self.world.files, volume, self.group_of(pod))
                self._mark_owner(volume)
            except CannotStart as error:
                messages += error.messages or (str(error),)
            except OSError as error:
                messages.append(self._describe(error))
        if messages:
            raise CannotStart(FAILED, "; ".join(messages), messages=tuple(messages))
        return sources

    async def _read_and_connect(self, pod: Object) -> Sources:
        """Return what `read_sources` does; the pod's network is created meanwhile, which takes as long."""
        reading = read_sources(self.cluster, pod, self.tokens)
        # An error of the network comes again in `start`, which reports it.
        sources, _ = await asyncio.gather(reading, self._network(pod), return_exceptions=True)
        if isinstance(sources, BaseException):
            raise sources
        return sources

    def _describe(self, error: OSError) -> str:
        return f"{error.filename or self.folders.root}: {error.strerror or error}"

    def _mark_owner(self, volume: PodVolume) -> None:
        """Record the owner of volumes in memory beside them: they outlive a cluster's folder that the user removes."""
        if volume.is_memory and volume.source is not None:
            home = str(self.folders.root.parent).encode()
            self.world.files.overwrite(volume.source.parent / MEMORY_OWNER, home, 0o600)

    def _refuse_private(self, spec: Mapping[str, Any], volume: PodVolume) -> None:
        """Refuse a host folder inside of the cluster's own folder, unless it belongs to a claim."""
        if volume.source is None or not spec.keys() & {"hostPath", "persistentVolumeClaim"}:
            return
        path = self.world.files.resolve(volume.source)
        claims = self.world.files.resolve(self.folders.root.parent / "volumes")
        is_claim = "persistentVolumeClaim" in spec and path.is_relative_to(claims) and path != claims
        if is_private(PurePosixPath(path), self.host) and not is_claim:
            reason = f"{volume.source} is inside of the cluster's own folder, which holds its keys and other pods' data"
            raise mount_failed(volume.name, f"{reason}; use a claim, or another folder")

    async def _mount(self, volume: PodVolume) -> None:
        if volume.mounted is None or volume.source is None or self.mounts is None:
            return
        try:
            await self.mounts.mount(volume.mounted, volume.source)
        except CannotStart as error:
            raise mount_failed(volume.name, str(error)) from error

    async def config_of(self, pod: Object, container: Object, restarts: int = 0) -> ContainerConfig:
        """Return everything that the sandbox of a container is made from; CannotStart says what is missing."""
        sources = await read_sources(self.cluster, pod, self.tokens)
        return self._config(pod, container, sources=sources, restarts=restarts)

    def _config(self, pod: Object, container: Object, *, sources: Sources, restarts: int) -> ContainerConfig:
        name, uid = str(container["name"]), uid_of(pod)
        # The image first, as in a kubelet.
        environment = self.images.environment_of(container)
        if problem := label_problem(name):
            raise CannotStart(CONFIG_ERROR, f"container name {name!r}: {problem}")
        pod = self._with_addresses(pod)
        allocated = self.devices.of(pod, container)
        # Without a sandbox there is neither the token nor the host name that programs look for next.
        api = self.hosts.network.variables if self.host.has_sandbox else {}
        defaults = devices.variables(allocated) | api
        env = defaults | env_of(pod, container, sources, self.host, defaults=defaults)
        working_dir, message_path = paths_of(container)
        mounts = mounts_of(pod, container, self.volume_lookup(sources), env)
        places = (*(mount.target for mount in mounts), *([working_dir] if working_dir else ()))
        closed = sandbox.closed_folders(environment, self.host)
        context = container.get("securityContext") or {}
        cgroup = self._cgroup(uid, container, restarts)
        return ContainerConfig(
            hostname=uts_hostname(pod),
            environment=environment,
            env=tuple(env.items()),
            command=command_of(container, env),
            mounts=mounts,
            hosts=self.hosts.path(pod),
            message=self.folders.attempt(uid, name, restarts) / MESSAGE,
            message_path=message_path,
            working_dir=working_dir,
            user=user_of(pod, container, self.host),
            mount_parents=mount_parents_of(places, closed, self.world.files, private=self.host.private_folders),
            is_read_only=bool(context.get("readOnlyRootFilesystem")),
            resolver=self._resolver(pod),
            devices=devices.nodes(allocated),
            capabilities=capabilities_of(container),
            cgroup=cgroup,
            views=cgroup_limits.views_of(self.host.cgroups, cgroup),
            confinement=confinement_of(pod, container, self.host),
        )

    def _resolver(self, pod: Object) -> str:
        """Return the path of a pod's resolv.conf; empty when it is the machine's."""
        if has_dns_config(pod):
            return str(self.folders.etc(uid_of(pod)) / "resolv.conf")
        return self.hosts.network.resolver if self.hosts.has_network(pod) else ""

    def _with_addresses(self, pod: Object) -> Object:
        """Return a pod with its addresses, which its containers may refer to before its status has them."""
        addresses = {"podIP": self.hosts.address(pod), "hostIP": self.hosts.network.host_address}
        return {**pod, "status": {**(pod.get("status") or {}), **addresses}}

    def volume_lookup(self, sources: Sources) -> VolumeLookup:
        """Return what the volumes of a pod are looked up in."""
        return VolumeLookup(
            claims=self.claims, volumes=self.volumes, sources=sources, folders=self.folders, host=self.host
        )

    def group_of(self, pod: Object) -> int | None:
        """Return the fsGroup of a pod."""
        group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
        return None if group is None else int(group)

    async def _network(self, pod: Object) -> str:
        """Return the path of the pod's network namespace; empty when it uses the host network."""
        if self.networks is None or not self.hosts.has_network(pod):
            return ""
        return await self.networks.make(uid_of(pod), self.hosts.address(pod))

    def _fill(self, pod: Object, config: ContainerConfig) -> None:
        """Create every file and folder that the sandbox binds."""
        files = self.world.files
        files.make_folder(config.message.parent)
        # Any user of the container may write its termination message.
        files.overwrite(config.message, b"", 0o666)
        self.archive.write_metadata(pod)
        if has_dns_config(pod):
            files.make_folder(Path(config.resolver).parent)
            files.overwrite(Path(config.resolver), resolv_conf_text(pod, self._name_servers(pod)).encode())
        for mount in config.mounts:
            make_sub_path(files, mount, config.message.parent.parent.name)
        self.hosts.flush()

    def _name_servers(self, pod: Object) -> str:
        """Read the resolv.conf that a pod without a DNS policy of its own would have."""
        path = Path(self.hosts.network.resolver if self.hosts.has_network(pod) else "/etc/resolv.conf")
        try:
            return self.world.files.read(path).decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _intent(self, pod: Object, container: Object, config: ContainerConfig) -> dict[str, Any]:
        """Return the shim's intent without the program to start."""
        image = str(container.get("image") or "")
        return {
            "pod": {"namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)},
            "container": container["name"],
            "environment": config.environment.name,
            "notFound": not_found(config.command[0], environment=config.environment.name, image=image),
            "cgroup": config.cgroup,
            "stopSignal": stop_signal(container),
            "binds": binds_of(config, self.folders.mounts / uid_of(pod) if self.host.may_mount else None),
            "process": sandbox.process_of(config, self.host),
        }

    def _program_intent(self, config: ContainerConfig, program: str) -> dict[str, Any]:
        """Return the part of the intent that says what is started: a sandbox, or the program alone."""
        if not self.host.has_sandbox:
            return sandbox.unsandboxed_intent(config, self.host)
        argv = [program, "--", *sandbox.command(config, self.host)]
        return {"argv": argv, "options": sandbox.options(config, self.host)}

    def _cgroup(self, uid: str, container: Object, restarts: int) -> dict[str, Any] | None:
        if self.host.cgroups is None:
            return None
        limits = cgroup_limits.limits_of(container, pids=self.host.pids_limit)
        return cgroup_limits.intent_of(self.host.cgroups, limits, name=f"{uid}.{container['name']}.{restarts}")

    def _remove_older(self, uid: str, name: str, restarts: int) -> None:
        """Remove all but the previous attempt, whose log users ask for."""
        for number in attempt_numbers(self.world, self.folders, uid, name):
            if number < restarts - 1:
                self.world.files.remove(self.folders.attempt(uid, name, number))


def paths_of(container: Object) -> tuple[str, str]:
    """Return a container's working directory, empty when it has none, and the path of its termination message."""
    folder, message = container.get("workingDir"), container.get("terminationMessagePath") or sandbox.MESSAGE
    return (
        path_in_sandbox(str(folder), "workingDir") if folder else "",
        path_in_sandbox(str(message), "terminationMessagePath"),
    )


def binds_of(config: ContainerConfig, mounts: Path | None) -> dict[str, Any] | None:
    """Return where the shim mounts subPaths before the sandbox binds them; None when there are none.

    `mounts` is the folder of a pod's mounts, outside of the folders that are removed recursively. Without it the agent
    may not mount, and the shim does so in a mount namespace of its own.
    """
    attempt = config.message.parent
    if not any(mount.sub_path for mount in config.mounts):
        return None
    if mounts is None:
        return {"folder": str(attempt / BINDS), "may_mount": False}
    return {"folder": str(mounts), "may_mount": True, "name": f"{attempt.parent.name}.{attempt.name}."}


def not_found(program: str, *, environment: str, image: str) -> str:
    """Return the message that a program is missing, and how to get it."""
    package = PACKAGES.get(program.rpartition("/")[2])
    hint = f"install {package or 'it'} there"
    return (
        f"{program}: not found in environment {environment}; {hint} or map the image to an environment that has it: "
        f"paceline up --image '{image}=FOLDER'"
    )
