"""Update the files of running pods when ConfigMaps, Secrets or tokens change, as a kubelet does."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import is_terminal
from paceline.effects import Files
from paceline.errors import PacelineError
from paceline.node.host_info import CannotStart
from paceline.node.lifecycle.starter import Starter
from paceline.node.volumes.references import SourceReader
from paceline.node.volumes.setup import make_volume
from paceline.node.volumes.volumes import PROJECTED, has_started, volume_of

# A kubelet takes up to 90 seconds.
PERIOD_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRefresher:
    starter: Starter
    pods: Mapping[Key, Object]

    async def run(self) -> None:
        """Work until cancelled; after a server error the next round tries again."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            self.starter.tokens.retain(uid_of(pod) for pod in self.pods.values())
            reader = SourceReader(cluster=self.starter.cluster, tokens=self.starter.tokens)
            for pod in tuple(self.pods.values()):
                if self._has_files(pod):
                    await self._refresh(pod, reader)

    def _has_files(self, pod: Object) -> bool:
        spec = pod["spec"]
        if spec.get("nodeName") != self.starter.host.name or is_terminal(pod) or not has_started(pod):
            return False
        return any(_is_projected(volume) for volume in spec.get("volumes") or ())

    async def _refresh(self, pod: Object, reader: SourceReader) -> None:
        try:
            lookup = self.starter.volume_lookup(await reader.of(pod))
        except PacelineError:
            return  # The server cannot be reached: the files stay, and the next round tries again.
        files: Files = self.starter.world.files
        for index, spec in enumerate(pod["spec"].get("volumes") or ()):
            if not _is_projected(spec):
                continue
            try:
                volume = volume_of(pod, index, spec, lookup)
            except CannotStart:
                continue  # The source was deleted or is invalid: a running pod keeps its files.
            # A volume that no container mounts has no folder.
            if volume.source is not None and files.exists(volume.source):
                make_volume(files, volume, self.starter.group_of(pod))


def _is_projected(volume: Mapping[str, object]) -> bool:
    return any(kind in volume for kind in PROJECTED)
