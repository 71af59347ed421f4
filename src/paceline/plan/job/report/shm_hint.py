"""Members that die of signal 7: nearly always because /dev/shm was full."""

from paceline.model.gang import Gang
from paceline.plan.job.attempts import Try

# As a shell says it: 128 and the number of SIGBUS.
BUS_ERROR = 135
SHM = "/dev/shm"  # noqa: S108 - where programs share memory, not where we keep a file


def shared_memory_advice(gang: Gang, replica: Try) -> str:
    """Return which setting to raise after SIGBUS; empty for any other end."""
    if replica.exit_code != BUS_ERROR:
        return ""
    return f"died of signal 7 (SIGBUS), as programs do when {SHM} is full; {_what_to_set(gang, replica)}"


def _what_to_set(gang: Gang, replica: Try) -> str:
    spec = gang.member(replica.place).template["spec"]
    mounted = [
        mount["name"]
        for container in spec["containers"]
        for mount in container.get("volumeMounts") or ()
        if mount.get("mountPath") == SHM
    ]
    role = f"replica type {replica.place.role}"
    if mounted:
        return f"raise emptyDir.sizeLimit of volume {mounted[0]} of {role}"
    return f"give {role} a larger one: a volume `emptyDir: {{medium: Memory, sizeLimit: 2Gi}}` mounted at {SHM}"
