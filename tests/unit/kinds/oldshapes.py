"""Jobs as older generations of T9k's pages and files have them, each a fresh copy."""

from tests.unit.kinds.manifests import job, service, template


def g0_mpi():
    """To spring 2023: processes and recovery are fields."""
    worker = {
        "replicas": 4,
        "processesPerWorker": 2,
        "processRecovery": {"enable": True, "limit": 100},
        "cmd": ["python3", "train.py"],
        "template": template(name="mpi-worker"),
    }
    return job("MPIJob", "demo", {"worker": worker, "runMode": {"debug": {"enable": False}}})


def g2_mpi():
    """2024: worker, mca and mpiHome at the top."""
    worker = {
        "replicas": 4,
        "extraMPIArgs": ["-bind-to", "none"],
        "cmd": ["python3", "train.py"],
        "template": template(name="mpi-worker"),
    }
    spec = {
        "worker": worker,
        "mca": {"btl": "^openib"},
        "mpiHome": "/usr/local",
        "ssh": {"authMountPath": "/root/.ssh"},
        "runPolicy": {"cleanUpWorkers": "true"},
    }
    return job("MPIJob", "demo", spec)


def g2_colossalai():
    """2024: launcher and worker at the top."""
    launcher = {
        "image": "python:3.10",
        "workingDir": "/mnt",
        "env": [{"name": "A", "value": "1"}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
    }
    worker = {
        "replicas": 2,
        "procPerWorker": 2,
        "command": ["train.py", "--lr", "1"],
        "torchArgs": ["--max_restarts", "1"],
        "template": template(name="worker"),
    }
    return job("ColossalAIJob", "demo", {"launcher": launcher, "worker": worker})


def g1_pytorch():
    """2023: `enable` where there is `enabled` today, and minNodes."""
    spec = {
        "runMode": {"debug": {"enable": False}, "pause": {"enable": True}},
        "torchrunConfig": {"enable": True, "minNodes": 1, "procPerNode": "2"},
        "elastic": {"enable": True, "minReplicas": 1, "maxReplicas": 3, "expectedReplicas": 2},
        "runPolicy": {"cleanUpPolicy": "all"},
        "replicaSpecs": [
            {"type": "node", "restartPolicy": {"policy": "OnFailure"}, "template": template(name="pytorch")}
        ],
    }
    return job("PyTorchTrainingJob", "demo", spec)


def text_generic():
    """A policy as training jobs write it."""
    spec = {
        "successRules": [{"worker": ["0"]}],
        "failureRules": [{"worker": [0]}],
        "replicaSpecs": [{"type": "worker", "restartPolicy": "OnFailure", "template": template()}],
    }
    return job("GenericJob", "demo", spec)


def text_deepspeed():
    """T9k's DeepSpeed page: the kind in another spelling, and text for a list."""
    worker = {"template": template(name="worker"), "restartPolicy": "Never"}
    return job("DeepspeedJob", "demo", {"config": {"run": {"python": "/t9k/mnt/train.py"}}, "worker": worker})


def alias_tensorflow():
    """The tutorial's job: the kind's old name, and a pod policy that means nothing."""
    pod = template(name="tensorflow")
    pod["spec"]["restartPolicy"] = "OnFailure"
    spec = {"replicaSpecs": [{"type": "worker", "replicas": 4, "restartPolicy": "ExitCode", "template": pod}]}
    return job("TensorFlowJob", "demo", spec)


def g1_tensorboard():
    return service("TensorBoard", "demo", {"trainingLogFilesets": ["t9k://minio/s/b/log/"], "runMode": "paused"})


def g1_notebook():
    return service("Notebook", "demo", {"type": "jupyter", "template": template(), "runMode": "running"})


OLD = {
    "G0 MPIJob": g0_mpi,
    "G2 MPIJob": g2_mpi,
    "G2 ColossalAIJob": g2_colossalai,
    "G1 PyTorchTrainingJob": g1_pytorch,
    "GenericJob with a text policy": text_generic,
    "DeepspeedJob with text for a list": text_deepspeed,
    "TensorFlowJob": alias_tensorflow,
    "G1 TensorBoard": g1_tensorboard,
    "G1 Notebook": g1_notebook,
}
