"""What a container wants done right after its start and right before its end."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.client.events import Recorder
from paceline.node.asking import Asking, Said
from paceline.objects.meta import Object

POST_START, PRE_STOP = "postStart", "preStop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Runs hooks and tells of those that failed."""

    asking: Asking
    recorder: Recorder
    address: Callable[[Object], str]

    async def after_start(self, pod: Object, container: Mapping[str, Any]) -> bool:
        """Run what follows the start; False when it failed, and the container has to go."""
        said = await self._run(pod, container, POST_START)
        if not said.is_good:
            await self.recorder.record(pod, "FailedPostStartHook", message=_words("PostStart", said), is_warning=True)
        return said.is_good

    async def before_stop(self, pod: Object, container: Mapping[str, Any], *, seconds: float) -> None:
        """Run what precedes the end, for as long as the grace period lasts."""
        try:
            async with asyncio.timeout(seconds):
                said = await self._run(pod, container, PRE_STOP)
        except TimeoutError:
            said = Said(is_good=False, text="it took longer than the grace period")
        if not said.is_good:
            await self.recorder.record(pod, "FailedPreStopHook", message=_words("PreStop", said), is_warning=True)

    async def _run(self, pod: Object, container: Mapping[str, Any], kind: str) -> Said:
        action, what = hook_of(container, kind) or ("", {})
        return await self.asking.act(action, what, pod, container=container, address=self.address(pod))


def hook_of(container: Mapping[str, Any], kind: str) -> tuple[str, Mapping[str, Any]] | None:
    """Read one hook of a container: how it is done, and what."""
    said = (container.get("lifecycle") or {}).get(kind) or {}
    return next(((name, what) for name, what in said.items() if what is not None), None)


def _words(name: str, said: Said) -> str:
    return f"{name}Hook failed: {said.text}" if said.text else f"{name}Hook failed"
