"""The past is cleared away by policy, again and again, and it is said."""

import asyncio
import logging
from dataclasses import dataclass, field

from paceline.client.events import Recorder
from paceline.node.history import History
from paceline.node.host import Host
from paceline.objects.meta import Object
from paceline.world import Blocking

log = logging.getLogger(__name__)

PERIOD_SECONDS = 600.0


@dataclass(slots=True, kw_only=True)
class Clearing:
    """Sweeps the history: at the start, whenever something was added to it, and from time to time."""

    history: History
    blocking: Blocking
    recorder: Recorder
    host: Host
    _is_due: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def hint(self) -> None:
        """Have the next round begin now."""
        self._is_due.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._is_due.clear()
            await self.sweep()
            try:
                async with asyncio.timeout(PERIOD_SECONDS):
                    await self._is_due.wait()
            except TimeoutError:
                continue

    async def sweep(self) -> None:
        """Clear away once; a disk that does not let us is tried again in the next round."""
        try:
            swept = await self.blocking.run(self.history.sweep)
        except OSError as error:
            log.warning("history not cleared", extra={"error": str(error)})
            return
        if swept.pods:
            said = f"removed logs of {swept.pods} pods that are gone, {swept.bytes} bytes, to keep within the policy"
            log.info("history cleared", extra={"pods": swept.pods, "bytes": swept.bytes})
            node: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.host.name}}
            await self.recorder.record(node, "HistoryPruned", message=said)
