"""How full the folders behind claims are: measured from time to time, the more seldom the longer it takes."""

import asyncio
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from paceline.apimachinery.meta import Key, Object, key_of, name_of, namespace_of
from paceline.apimachinery.pods import claims_of
from paceline.apimachinery.quantity import whole
from paceline.apimachinery.timestamps import to_wire
from paceline.effects import Clock, Executor, Files

PERIOD_SECONDS = 15.0
# Looking takes at most this part of the time: a folder of millions of files is looked at seldom.
SHARE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    used: int
    at: datetime
    # Before when it is not looked at again, on the clock that never runs backwards.
    next: float


@dataclass(slots=True, kw_only=True)
class VolumeUsage:
    """Measures the claims of this machine, whether or not a pod has them mounted."""

    files: Files
    clock: Clock
    blocking: Executor
    claims: Mapping[Key, Object]
    volumes: Mapping[Key, Object]
    _looks: dict[Path, _Look] = field(init=False, default_factory=dict)

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(PERIOD_SECONDS)

    async def look(self) -> None:
        """Measure every folder whose turn it is, and forget those that are gone."""
        folders = {folder for _, folder, _ in self._folders()}
        self._looks = {folder: look for folder, look in self._looks.items() if folder in folders}
        for folder in sorted(folders):
            before, began = self._looks.get(folder), self.clock.monotonic()
            if before is None or began >= before.next:
                used = await self.blocking.run(functools.partial(self.files.used, folder))
                now = self.clock.monotonic()
                self._looks[folder] = _Look(used=used, at=self.clock.now(), next=now + (now - began) / SHARE)

    def told(self) -> tuple[Object, ...]:
        """Tell how full each claim is, in a kubelet's words."""
        return tuple(
            {
                "time": to_wire(look.at),
                "pvcRef": {"name": name_of(claim), "namespace": namespace_of(claim)},
                "usedBytes": look.used,
                "capacityBytes": capacity,
                "availableBytes": max(capacity - look.used, 0),
            }
            for claim, folder, capacity in self._folders()
            if (look := self._looks.get(folder)) is not None
        )

    def of(self, pod: Object) -> list[Object]:
        """Tell how full the claims are that a pod mounts, by the names of its volumes."""
        by_claim = {(each["pvcRef"]["namespace"], each["pvcRef"]["name"]): each for each in self.told()}
        namespace = namespace_of(pod)
        return [
            {**stats, "name": claim.volume}
            for claim in claims_of(pod)
            if (stats := by_claim.get((namespace, claim.name)))
        ]

    def _folders(self) -> Iterator[tuple[Object, Path, int]]:
        """Give every claim that is a folder of this machine, with that and what it may hold."""
        for claim in sorted(self.claims.values(), key=key_of):
            volume = self.volumes.get(("", str(claim["spec"].get("volumeName") or "")))
            spec = (volume or {}).get("spec") or {}
            place = spec.get("hostPath") or spec.get("local")
            capacity = (spec.get("capacity") or {}).get("storage")
            if place and capacity:
                yield claim, Path(place["path"]), whole(capacity)
