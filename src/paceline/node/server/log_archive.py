"""The part of the agent's API that tells of pods that are gone: which there were, and their logs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paceline.apimachinery.meta import Object
from paceline.errors import BadRequest, NotFound
from paceline.node.logs.archive import CONTAINERS, ArchivedPod, History, removed


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedLogs:
    """Finds what is kept."""

    history: History

    def list(self, namespace: str, query: Mapping[str, str]) -> Object:
        """List the pods of a namespace that are gone, the last one first; of one job or of one name, if asked so."""
        found = self.history.find(namespace, job=query.get("job", ""), pod=query.get("pod", ""))
        return {"kind": "PastPodList", "apiVersion": "paceline.dev/v1beta1", "items": [each.about for each in found]}

    def folder(self, namespace: str, pod: str, query: Mapping[str, str]) -> Path:
        """Find the folder of the try whose log is wanted; which one is said by uid, container and restarts."""
        found = self.history.find(namespace, pod=pod)
        wanted = [each for each in found if query.get("uid", "") in ("", each.about["uid"])]
        if not wanted:
            raise NotFound(f"of pod {pod} nothing is kept: it was never here, or was forgotten long ago")
        return self._folder(wanted[0], query)

    def _folder(self, past: ArchivedPod, query: Mapping[str, str]) -> Path:
        about = past.about
        name = query.get("container") or _only(about)
        tries = [int(each["restarts"]) for each in about["tries"] if each["container"] == name]
        if name not in about["containers"]:
            raise BadRequest(f"container {name} is not valid for pod {about['pod']}; it had: {_names(about)}")
        index = -2 if query.get("previous") in ("true", "1") else -1
        if len(tries) < -index:
            raise BadRequest(f"container {name} of pod {about['pod']} has no such log")
        folder = past.folder / CONTAINERS / name / str(tries[index])
        if past.is_pruned or not self.history.world.files.exists(folder):
            raise removed(str(about["pod"]), str(about.get("prunedAt", "meanwhile")))
        return self.history.check_log(folder, str(about["pod"]))


def _only(about: Object) -> str:
    if len(about["main"]) != 1:
        raise BadRequest(f"a container name must be specified for pod {about['pod']}, choose one of: {_names(about)}")
    return str(about["main"][0])


def _names(about: Object) -> str:
    return ", ".join(about["containers"])
