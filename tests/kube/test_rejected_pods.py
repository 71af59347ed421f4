"""Objects whose pods the cluster rejects: they say why, and write at most once in 30 seconds."""

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from paceline.apimachinery.meta import Object, name_of
from paceline.client.interface import NAMESPACES, Collection
from paceline.client.requests import Request, Response
from paceline.controllers.refusals import AGAIN
from paceline.effects import Clock
from tests.kube.stage import LOOK_SECONDS, OpenTransport, Stage, Tap, run, skip, staged
from tests.unit.kinds.manifests import explorer, generic, notebook, pytorch, replica, template, tensorboard

REASON = "exceeded quota: small, requested: pods=1, used: pods={}, limited: pods=9"
GIT = {"source": {"git": {"url": "https://example.org/team/code.git"}}}
BOARD = {"logDir": {"s3": {"secretRef": {"name": "keys"}, "uri": ["s3://bucket/log"]}}}
REFUSED = {
    "a job": pytorch(),
    "a job with code": generic(**GIT),
    "a TensorBoard": tensorboard(**BOARD),
    "a notebook": notebook(),
}
# What the time skipped has room for, and some more.
ROUNDS = 10


class Quota(Tap):
    """A way to a server that has no room for pods; its message differs every time."""

    is_full = True
    tries = 0

    async def send(self, request: Request) -> Response:
        if self.is_full and request.method == "POST" and request.path.endswith("/pods"):
            self.tries += 1
            self.writes.append(f"POST {request.path}")
            message = f"pods is forbidden: {REASON.format(self.tries)}"
            status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message}
            return Response(status=403, headers=(), body=json.dumps(status).encode())
        return await super().send(request)


def shown(obj: Object) -> str:
    return str((obj.get("status") or {}).get("waiting", ""))


async def says(stage: Stage, obj: Object, text: str) -> None:
    async def look() -> bool:
        return text in shown(await stage.read(obj))

    await stage.until(look, lambda: f"{name_of(obj)} says {text!r}", hurry=0.1)


async def pass_time(seconds: float) -> None:
    """Let virtual time pass in small steps, each with a moment for what is due."""
    for _ in range(int(seconds / 2)):
        skip(2.0)
        await asyncio.sleep(LOOK_SECONDS)


@pytest.mark.parametrize("manifest", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_says_so_and_is_tried_again_every_half_minute(
    opens: OpenTransport, manifest: dict[str, Any]
) -> None:
    async def main() -> None:
        async with opens() as transport, staged(transport) as stage:
            quota = Quota(transport)
            async with stage.controllers(quota):
                obj = await stage.submit(manifest)
                await says(stage, obj, "exceeded quota")
                await asyncio.sleep(1.0)
                first = len(quota.writes)
                await pass_time(ROUNDS * AGAIN.total_seconds())
                writes = quota.writes[first:]
                assert 0 < len(writes) <= ROUNDS + 1, writes
                assert (await stage.reasons(obj)).count("Refused") == 1
                quota.is_full = False
                await stage.runs(1 if manifest["kind"] != "PyTorchTrainingJob" else 2, hurry=0.5)

                async def is_silent() -> bool:
                    return "exceeded quota" not in shown(await stage.read(obj))

                await stage.until(is_silent, hurry=0.1)

    run(main())


class Hurried:
    """A clock on which ten seconds pass with every look at it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = timedelta()

    def now(self) -> datetime:
        self._ahead += timedelta(seconds=10)
        return self._clock.now() + self._ahead

    def monotonic(self) -> float:
        return self._clock.monotonic()


def test_what_is_not_tried_again_yet_does_not_count_as_accepted(opens: OpenTransport) -> None:
    async def main() -> None:
        async with opens() as transport, staged(transport) as stage:
            stage.world = replace(stage.world, clock=Hurried(stage.world.clock))
            quota = Quota(transport)
            async with stage.controllers(quota):
                job = await stage.submit(pytorch())
                await says(stage, job, "exceeded quota")
                await pass_time(2 * AGAIN.total_seconds())
                assert quota.tries > 2
                assert sum(write.endswith("/services") for write in quota.writes) == 1
                assert (await stage.reasons(job)).count("Refused") == 1

    run(main())


@pytest.mark.kube
@pytest.mark.timeout(180)
def test_our_containers_pass_the_restricted_policy_if_the_authors_do(opens_real: OpenTransport) -> None:
    async def main() -> None:
        async with opens_real() as transport, staged(transport) as stage, stage.controllers():
            labels = {"pod-security.kubernetes.io/enforce": "restricted"}
            await stage.people.patch(NAMESPACES, ("", stage.namespace), {"metadata": {"labels": labels}})
            await stage.claim("data")
            security = {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            }
            pod = template(securityContext=security)
            desk = template(name="notebook", securityContext=security)
            bucket = {"bucket": {"url": "s3://results/runs", "secret": "keys"}}
            pinned = {"git": {**GIT["source"]["git"], "revision": "0123456789abcdef0123456789abcdef01234567"}}
            job = generic(replica(template=pod), source={**GIT["source"], "cache": "data"}, input=bucket, output=bucket)
            await stage.submit({**job, "spec": {**job["spec"], "source": {**pinned, "cache": "data"}}}, "pinned")
            await stage.submit(job, "resolved")
            await stage.submit(notebook(template=desk), "desk")
            await stage.submit(tensorboard(**BOARD), "curves")
            await stage.submit(explorer(), "files")

            async def are_there() -> bool:
                pods = [name_of(pod).split("-")[0] for pod in await stage.pods()]
                return sorted(pods) == ["curves", "desk", "files", "pinned", "pinned", "resolved"]

            await stage.until(are_there)

    run(main())


QUOTAS = Collection(group="", version="v1", plural="resourcequotas")


@pytest.mark.kube
@pytest.mark.timeout(180)
def test_a_namespace_with_a_quota_of_cpu_and_memory_accepts_our_containers(opens_real: OpenTransport) -> None:
    async def main() -> None:
        async with opens_real() as transport, staged(transport) as stage, stage.controllers():
            hard = {f"{part}.{name}": "64Gi" for part in ("requests", "limits") for name in ("cpu", "memory")}
            quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"}, "spec": {"hard": hard}}
            quota["metadata"]["namespace"] = stage.namespace
            await stage.people.create(QUOTAS, quota)
            # A controller that is not here would write it; the server refuses pods by it.
            used = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
            await stage.people.patch(QUOTAS, (stage.namespace, "all"), used, subresource="status")
            bare = await stage.submit(pytorch(), "bare")
            await says(stage, bare, "failed quota: all: must specify limits.cpu")
            pod = template(resources={"limits": {"cpu": "1", "memory": "1Gi"}})
            await stage.submit(generic(replica(template=pod), **GIT), "fed")

            async def is_there() -> bool:
                return [name_of(pod).split("-")[-1] for pod in await stage.pods()] == ["resolve"]

            await stage.until(is_there)

    run(main())
