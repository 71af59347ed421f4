"""Paceline runs distributed training jobs on one machine or on Kubernetes, with the same YAML.

In     what a person wrote: YAML, a command, a call of the SDK.
Out    the public names of the SDK, each loaded when it is first used.
Never  starts anything on import.
"""

from importlib import import_module

# The one place of the version: pyproject.toml reads it from here.
__version__ = "0.1.0"

_PUBLIC = {
    "connect": "paceline.sdk.connect",
    "Session": "paceline.sdk.client",
    "JobRef": "paceline.sdk.job",
    "ReplicaSelector": "paceline.sdk.follow",
}


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'paceline' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted((*_PUBLIC, "__version__"))
