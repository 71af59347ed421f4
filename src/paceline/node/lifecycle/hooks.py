"""What a container wants done right after its start and right before its end."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.client.event_recorder import Recorder
from paceline.node.lifecycle.events import part_of
from paceline.node.lifecycle.hooks_spec import POST_START, PRE_STOP, hook_of
from paceline.node.probes.prober import Prober, ProbeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Runs hooks and tells of those that failed."""

    asking: Prober
    recorder: Recorder
    address: Callable[[Object], str]

    async def after_start(self, pod: Object, container: Mapping[str, Any], *, still: Callable[[], bool]) -> bool:
        """Run what follows the start; False when it failed, and the container has to go if it is `still` wanted."""
        said = await self._run(pod, container, POST_START)
        if not said.is_good and still():
            await self._tell(pod, container, "PostStart", said)
        return said.is_good

    async def before_stop(self, pod: Object, container: Mapping[str, Any], *, seconds: float) -> ProbeResult:
        """Run what precedes the end, for as long as the grace period lasts."""
        try:
            async with asyncio.timeout(seconds):
                return await self._run(pod, container, PRE_STOP)
        except TimeoutError:
            return ProbeResult(is_good=False, text="it took longer than the grace period")

    async def tell_of_stop(self, pod: Object, container: Mapping[str, Any], said: ProbeResult) -> None:
        """Tell of what preceded the end, if it failed."""
        if not said.is_good and (said.text or not said.is_unknown):
            await self._tell(pod, container, "PreStop", said)

    async def _run(self, pod: Object, container: Mapping[str, Any], kind: str) -> ProbeResult:
        action, what = hook_of(container, kind) or ("", {})
        return await self.asking.act(action, what, pod, container=container, address=self.address(pod))

    async def _tell(self, pod: Object, container: Mapping[str, Any], kind: str, said: ProbeResult) -> None:
        words = f"{kind}Hook failed: {said.text.strip()}" if said.text.strip() else f"{kind}Hook failed"
        part = part_of(pod, str(container["name"]))
        await self.recorder.record(pod, f"Failed{kind}Hook", message=words, is_warning=True, part=part)
