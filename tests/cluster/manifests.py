"""Small jobs for a real cluster: every container is small, ends quickly when told to, and pulls nothing."""

from typing import Any

from tests.cluster.lab import IMAGE

RESOURCES = {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}

# What the strictest level of Pod Security wants of a container.
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def template(program: str, *, name: str = "main", **pod: Any) -> dict[str, Any]:
    """Return the template of a pod that runs a Python program."""
    container = {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-uc", program],
        "resources": RESOURCES,
        **pod.pop("container", {}),
    }
    return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **pod}}


def job(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def replica(
    program: str, role: str = "worker", replicas: int = 2, *, container_name: str = "main", **pod: Any
) -> dict[str, Any]:
    return {"type": role, "replicas": replicas, "template": template(program, name=container_name, **pod)}


def generic(name: str, program: str, *, replicas: int = 2, **more: Any) -> dict[str, Any]:
    pod = more.pop("pod", {})
    rules = {"successRules": [{"worker": list(range(replicas))}], "failureRules": [{"worker": [0]}]}
    return job("GenericJob", name, **rules, replicaSpecs=[replica(program, replicas=replicas, **pod)], **more)


def pytorch(name: str, program: str, *, replicas: int = 2, **more: Any) -> dict[str, Any]:
    pod = more.pop("pod", {})
    specs = [replica(program, replicas=replicas, container_name="pytorch", **pod)]
    return job("PyTorchTrainingJob", name, replicaSpecs=specs, **more)


def tensorflow(name: str, program: str, *, kind: str = "TensorFlowTrainingJob", **more: Any) -> dict[str, Any]:
    pod = more.pop("pod", {})
    return job(kind, name, replicaSpecs=[replica(program, container_name="tensorflow", **pod)], **more)


def xgboost(name: str, program: str, **pod: Any) -> dict[str, Any]:
    roles = (("master", 1), ("worker", 2))
    specs = [replica(program, role, count, container_name="xgboost", **pod) for role, count in roles]
    return job("XGBoostTrainingJob", name, replicaSpecs=specs)


def mpi(name: str, script: list[str], *, image: str, processes: int = 1, **pod: Any) -> dict[str, Any]:
    """Return a job of two workers, in each of which mpirun starts processes."""
    config = {"extraArgs": ["-N", str(processes)], "script": script}
    container = {"image": image, **pod.pop("container", {})}
    worker = replica("", container_name="worker", container=container, **pod)
    return job("MPIJob", name, mpiConfig=config, replicaSpecs=[worker])


def deepspeed(name: str, command: str, **pod: Any) -> dict[str, Any]:
    """Return a job whose first worker runs a shell command."""
    worker = {"replicas": 2, "template": template("", name="worker", **pod)}
    return job("DeepSpeedJob", name, config={"customCommand": command}, worker=worker)


def colossalai(name: str, script: list[str], **pod: Any) -> dict[str, Any]:
    """Return a job whose launcher starts torchrun in two workers."""
    worker = replica("", container_name="worker", **pod)
    return job("ColossalAIJob", name, torchConfig={"script": script}, replicaSpecs=[worker])


def on_claim(claim: str) -> dict[str, Any]:
    """Return the parts of a pod that mount a claim at /shared."""
    return {
        "container": {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]},
        "volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": claim}}],
    }


def claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def spread(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a job of one replica type whose replicas are on different nodes."""
    labels = {"spread": manifest["metadata"]["name"]}
    template = manifest["spec"]["replicaSpecs"][0]["template"]
    template["metadata"] = {"labels": labels}
    template["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
    ]
    return manifest
