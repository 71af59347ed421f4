"""The list of behaviours: one file of cases per topic, each case a sentence and a pod with real processes.

A case of cases/<topic>.yaml:

    - name: a pod whose program ends with 3 has failed      # the sentence; a namespace of its own is named after it
      pod:                                                  # the spec of the pod under test, whose name is `pod`
        restartPolicy: Never
        containers: [{sh: "echo hello; exit 3"}]
      until: [phase=Failed]                                 # all of these at once; then the answer is taken

Left out, they are filled in: a container's `name: main`, `image: busybox`, `imagePullPolicy: IfNotPresent`; the pod's
`automountServiceAccountToken: false`. `sh: TEXT` is short for `command: [sh, -c, TEXT]`. The image has busybox under
all of its names and no other program; commands must mean the same on an ordinary machine. `$NS` anywhere is the case's
namespace, `$FOLDER` a folder of the machine that is there for the case. More keys of a case:

    metadata: {labels: {a: b}}        of the pod
    objects: [...]                    whole manifests that are there before it (names of volumes and the like: with $NS)
    then: [...]                       after `until`, one after the other:
        - delete: 5                   ask for the pod to go with this grace (`delete: default` leaves it to the pod)
        - evict: 5                    the same by way of an eviction
        - patch: {spec: {...}}        merge into the pod; with `door: status` (or ephemeralcontainers) beside it: there
        - remove: {ConfigMap: words}  an object of the case
        - apply: [...]                whole manifests to make, or to merge into what is there
        - until: [...]
    bound: [data]                     claims that must have a volume before the pod is made
    previous: [main]                  record the log of the try before, too
    logs: false                       record no logs (else: of every container that has run, while the pod is there)
    events: false                     record no events
    needs: root                       on the embedded cluster too: without its rights it would be another answer
    moment: true                      the answer is that of the moment of `until`, and not what comes to rest after it
    seconds: 60                       how long an `until` may take

After a `delete` the pod must go; the answer is what it last said of itself, and `gone: true`. One that a finalizer
holds has `stays: true` beside the `delete`.

Conditions of `until`:
    phase=Running    reason=Evicted
    main=running     main=waiting     main=terminated   (any container's name)
    main=waiting:CrashLoopBackOff     main=terminated:Error
    main.restarts>=2   main.ready=true   main.started=true   main.last=terminated:Error
    Ready=False      Ready=False:ContainersNotReady     (a condition's status and reason)
    event:Unhealthy  event:Killing>=2 (how many in all)   event:Failed~text (in its message)
    log:main~text    (in the container's log)
    gone
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.cases import cases_in, namespace_of, slug_of

HERE = Path(__file__).parent
POD = "pod"
CONTAINER = {"name": "main", "image": "busybox", "imagePullPolicy": "IfNotPresent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One behaviour of a pod, told as a sentence."""

    name: str
    topic: str
    pod: Mapping[str, Any]
    until: tuple[str, ...]
    metadata: Mapping[str, Any]
    objects: tuple[Mapping[str, Any], ...] = ()
    then: tuple[Mapping[str, Any], ...] = ()
    bound: tuple[str, ...] = ()
    previous: tuple[str, ...] = ()
    logs: bool = True
    events: bool = True
    moment: bool = False
    # "root": on the embedded cluster too.
    needs: str = ""
    seconds: float = 60.0

    @property
    def slug(self) -> str:
        """The name as one word."""
        return slug_of(self.name)

    @property
    def namespace(self) -> str:
        """A namespace of its own, the same on every cluster."""
        return namespace_of(self.name)

    @property
    def folder(self) -> Path:
        """A folder of the machine, the same on every cluster."""
        return Path("/tmp") / f"conformance-{self.namespace}"

    def placed(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Put an object into the case's namespace; where there are none for its kind, that is ignored."""
        placed: dict[str, Any] = _replaced(manifest, {"$NS": self.namespace, "$FOLDER": str(self.folder)})
        placed["metadata"].setdefault("namespace", self.namespace)
        return placed

    @property
    def ends(self) -> bool:
        """Whether the pod is to go before the answer is taken."""
        return any(("delete" in step or "evict" in step) and not step.get("stays") for step in self.then)

    @property
    def manifests(self) -> tuple[dict[str, Any], ...]:
        """All objects of the case, the pod last."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**self.metadata, "name": POD}, "spec": _full(self.pod)}
        return tuple(self.placed(each) for each in (*self.objects, pod))


def _full(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in what a case leaves out."""
    full = {"automountServiceAccountToken": False, **deepcopy(spec)}
    for kind in ("initContainers", "containers"):
        if kind in full:
            full[kind] = [_container(each) for each in full[kind]]
    return full


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    full = {**CONTAINER, **container}
    if "sh" in full:
        full["command"] = ["sh", "-c", full.pop("sh")]
    return full


def _replaced(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for word, put in words.items():
            value = value.replace(word, put)
        return value
    if isinstance(value, Mapping):
        return {_replaced(key, words): _replaced(each, words) for key, each in value.items()}
    return [_replaced(each, words) for each in value] if isinstance(value, list) else value


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, in the order of topics and lines; no two with the same namespace."""
    return cases_in(HERE / "cases", _read)


def _read(path: Path) -> Iterator[Case]:
    for each in yaml.safe_load(path.read_text()) or ():
        fields = {key: tuple(value) if isinstance(value, list) else value for key, value in each.items()}
        yield Case(**{"topic": path.stem, "metadata": {}, **fields})
