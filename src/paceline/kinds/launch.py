"""Members that start processes in each other, without sshd: MPI, DeepSpeed, ColossalAI.

Every member of such a job mounts one folder. It holds what expand writes (the hosts and their ports) and what the
controller adds: a key of this job alone, and an agent under the names `agent`, `ssh` and `pdsh`. `agent serve` takes
the place of sshd in the workers; `ssh HOST COMMAND` and `pdsh -w HOSTS COMMAND` reach it, show the key, pass the
command's output on and end with its exit code.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.kinds.fields import Free
from paceline.kinds.kind import Ports
from paceline.kinds.template import each_container, read
from paceline.objects.gang import Launch, Place, Site
from paceline.objects.quantity import parse

FOLDER = "/t9k/launch"
HOSTFILE = f"{FOLDER}/hostfile"
AGENT = f"{FOLDER}/agent"
SSH = f"{FOLDER}/ssh"
VOLUME = "paceline-launch"
# Everybody in the pod may read and run what lies there, whichever user the image has.
MODE = 0o555
# The usual number of an SSH server that runs without root.
USUAL_PORT = 2222
# Finds our stand-ins before the image's own programs, then becomes the program that is asked for.
WITH_PATH = f'PATH={FOLDER}:$PATH; export PATH; exec "$0" "$@"'
GPU = "nvidia.com/gpu"


def launch(site: Site, hosts: Mapping[Place, int], **more: str) -> Launch:
    """Write the files: an MPI-style hostfile with slots, and the agents' ports by host."""
    listed = [f"{site.host(place)} slots={slots}" for place, slots in hosts.items()]
    where = {site.host(place): site.ports[str(place)] for place in hosts}
    return Launch(files={"hostfile": "\n".join(listed) + "\n", "hosts.json": json.dumps(where), **more})


def agent_ports(places: Sequence[Place]) -> Ports:
    """Ask for the port of every agent."""
    return {str(place): USUAL_PORT for place in places}


def serve(site: Site, place: Place) -> list[str]:
    """Give the command that waits for others to start something here."""
    return ["python3", AGENT, "serve", f"--port={site.ports[str(place)]}", f"--bind={site.hostname(place)}"]


def with_stand_ins(*words: str) -> list[str]:
    """Give a command that finds our ssh and pdsh first."""
    return ["sh", "-c", WITH_PATH, *words]


def beside_agent(site: Site, place: Place, *words: str) -> list[str]:
    """Give a command that runs while its own container can be reached too."""
    return ["sh", "-c", f"{' '.join(serve(site, place))} & {WITH_PATH}", *words]


def with_folder(template: Mapping[str, Any], site: Site, **also: str) -> Free:
    """Copy a template with the launch folder in every container; `also` says which files lie elsewhere too."""
    volume = {"name": VOLUME, "secret": {"secretName": site.launch_secret, "defaultMode": MODE}}
    mounts = [{"name": VOLUME, "mountPath": FOLDER, "readOnly": True}]
    mounts += [{"name": VOLUME, "mountPath": path, "subPath": file, "readOnly": True} for file, path in also.items()]

    def mounted(container: Mapping[str, Any]) -> Free:
        return {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), *mounts]}

    changed = each_container(template, mounted)
    spec = changed["spec"]
    return {**changed, "spec": {**spec, "volumes": [*(spec.get("volumes") or ()), volume]}}


def gpus_of(template: Mapping[str, Any], main: int) -> int:
    """Count the GPUs of a container of a faultless template."""
    resources = read(template).spec.containers[main].resources
    return int(parse(str(((resources and resources.limits) or {}).get(GPU, 0))))
