"""Config maps and secrets that change reach the files of pods that run, as with a kubelet."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import is_terminal
from paceline.effects import Files
from paceline.errors import PacelineError
from paceline.node.host_info import CannotStart
from paceline.node.lifecycle.starter import Starter
from paceline.node.volumes.references import Reading
from paceline.node.volumes.setup import make_volume
from paceline.node.volumes.volumes import MADE_OF_OTHERS, has_begun, volume_of

# A kubelet takes up to a minute and a half; whoever waits for it is glad of less.
PERIOD_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """Looks at the volumes of running pods again and again."""

    starter: Starter
    pods: Mapping[Key, Object]

    async def run(self) -> None:
        """Work until cancelled; trouble with the server is waited out."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            self.starter.tokens.keep(uid_of(pod) for pod in self.pods.values())
            reading = Reading(cluster=self.starter.cluster, tokens=self.starter.tokens)
            for pod in tuple(self.pods.values()):
                if self._is_concerned(pod):
                    await self._renew(pod, reading)

    def _is_concerned(self, pod: Object) -> bool:
        spec = pod["spec"]
        if spec.get("nodeName") != self.starter.host.name or is_terminal(pod) or not has_begun(pod):
            return False
        return any(word in volume for volume in spec.get("volumes") or () for word in MADE_OF_OTHERS)

    async def _renew(self, pod: Object, reading: Reading) -> None:
        try:
            shelf = self.starter.shelf(await reading.of(pod))
        except PacelineError:
            return  # The server is away: what is there stays, and the next round asks again.
        files: Files = self.starter.world.files
        for index, spec in enumerate(pod["spec"].get("volumes") or ()):
            if not any(word in spec for word in MADE_OF_OTHERS):
                continue
            try:
                volume = volume_of(pod, index, spec, shelf)
            except CannotStart:
                continue  # Gone or broken by now: a running pod keeps what it was given.
            # One that no container mounts was never made.
            if volume.source is not None and files.exists(volume.source):
                make_volume(files, volume, self.starter.group_of(pod))
