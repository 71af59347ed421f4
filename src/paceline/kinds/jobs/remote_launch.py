"""Members that start processes in each other, without sshd: MPI, DeepSpeed, ColossalAI.

Every member of such a job mounts one directory. It contains the files that expand writes (the hosts and their ports)
and those that the controller adds: a key for this job only, and an agent under the names `agent`, `ssh` and `pdsh`.
`agent serve` replaces sshd in the workers; `ssh HOST COMMAND` and `pdsh -w HOSTS COMMAND` connect to it, authenticate
with the key, pass on the command's output and exit with its exit code.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.apimachinery.quantity import parse
from paceline.kinds.kind_types import Ports
from paceline.kinds.spec.fields import Free
from paceline.kinds.spec.pod_template import each_container, read
from paceline.model.gang import JobNaming, RemoteLaunch, ReplicaId

FOLDER = "/t9k/launch"
HOSTFILE = f"{FOLDER}/hostfile"
AGENT = f"{FOLDER}/agent"
SSH = f"{FOLDER}/ssh"
VOLUME = "paceline-launch"
# Readable and executable by every user, because the image decides which user the container has.
MODE = 0o555
# The usual port of an SSH server that runs without root.
USUAL_PORT = 2222
# Puts our ssh and pdsh before those of the image in PATH, then executes the program.
WITH_PATH = f'PATH={FOLDER}:$PATH; export PATH; exec "$0" "$@"'
GPU = "nvidia.com/gpu"


def launch(site: JobNaming, hosts: Mapping[ReplicaId, int], **files: str) -> RemoteLaunch:
    """Return the files of the directory: an MPI hostfile with slots, and the agents' ports by host."""
    lines = [f"{site.host(place)} slots={slots}" for place, slots in hosts.items()]
    ports = {site.host(place): site.ports[str(place)] for place in hosts}
    return RemoteLaunch(files={"hostfile": "\n".join(lines) + "\n", "hosts.json": json.dumps(ports), **files})


def agent_ports(places: Sequence[ReplicaId]) -> Ports:
    """Return one port for the agent of each replica."""
    return {str(place): USUAL_PORT for place in places}


def serve(site: JobNaming, place: ReplicaId) -> list[str]:
    """Return the command of the agent, with which other members start processes in this one."""
    return ["python3", AGENT, "serve", f"--port={site.ports[str(place)]}", f"--bind={site.hostname(place)}"]


def with_stand_ins(*arguments: str) -> list[str]:
    """Return a command whose PATH has our ssh and pdsh first."""
    return ["sh", "-c", WITH_PATH, *arguments]


def beside_agent(site: JobNaming, place: ReplicaId, *arguments: str) -> list[str]:
    """Return a command that runs next to the agent of its own container."""
    return ["sh", "-c", f"{' '.join(serve(site, place))} & {WITH_PATH}", *arguments]


def with_folder(template: Mapping[str, Any], site: JobNaming, **also: str) -> Free:
    """Return a copy of a template with the launch directory mounted in every container.

    `also` mounts single files at other paths too: file name → path.
    """
    volume = {"name": VOLUME, "secret": {"secretName": site.launch_secret, "defaultMode": MODE}}
    mounts = [{"name": VOLUME, "mountPath": FOLDER, "readOnly": True}]
    mounts += [{"name": VOLUME, "mountPath": path, "subPath": file, "readOnly": True} for file, path in also.items()]

    def mounted(container: Mapping[str, Any]) -> Free:
        return {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), *mounts]}

    changed = each_container(template, mounted)
    spec = changed["spec"]
    return {**changed, "spec": {**spec, "volumes": [*(spec.get("volumes") or ()), volume]}}


def gpus_of(template: Mapping[str, Any], main: int) -> int:
    """Return the number of GPUs of a container; the template must be valid."""
    resources = read(template).spec.containers[main].resources
    return int(parse(str(((resources and resources.limits) or {}).get(GPU, 0))))
