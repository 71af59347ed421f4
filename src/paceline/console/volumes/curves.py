"""`/api/curves/NAMESPACE/KIND/NAME`: the training curves of a job, from its event files or from its log."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from paceline.apimachinery.meta import Object, controller_of, name_of, uid_of
from paceline.apimachinery.name_validation import subdomain_problem
from paceline.client.interface import PODS, Select
from paceline.client.requests import Request as ClusterRequest
from paceline.console.actions import collection_of
from paceline.console.people import Person, person_of
from paceline.console.responses import json_response
from paceline.console.runtime import Runtime, runtime_of
from paceline.console.subscriptions.log_source import PodLogSource
from paceline.console.subscriptions.messages import LogSubscription
from paceline.console.volumes.explorers import ClaimRef
from paceline.errors import BadRequest
from paceline.model import well_known_labels
from paceline.model.log_metrics import series_in
from paceline.presentation import explorer
from paceline.presentation.curves import log_runs
from paceline.presentation.explorer import CurveFolder, curve_folders
from paceline.presentation.log_lines import stamped_text
from paceline.presentation.replica_pods import last_attempts, leader_id, replica_pods

MAX_POINTS = 2_000
# Of a longer log, the end.
MAX_LINES = 200_000
# Lines after which other requests get their turn.
TURN = 2_000


async def curves(request: Request) -> Response:
    """Answer with source, folders and runs; without `source`, from event files if the job says where they are."""
    runtime, person, path = runtime_of(request), person_of(request), request.path_params
    for word in (path["namespace"], path["name"]):
        if problem := subdomain_problem(word):
            raise BadRequest(f"{word!r} {problem}")
    points, source = points_in(request), request.query_params.get("source", "")
    if source not in ("", "events", "logs"):
        raise BadRequest(f"source: {source!r} is neither events nor logs")
    job = await person.client.get(collection_of(path["kind"]), path["namespace"], path["name"])
    folders = curve_folders(job)
    runs: list[dict[str, Any]] = []
    if folders and source != "logs":
        runs = await event_runs(runtime, person, path["namespace"], folders, points=points)
    is_log = not any(run["scalars"] for run in runs) and source != "events"
    if is_log:
        runs = await runs_of_log(runtime, person, job, points=points)
    listed = [{"claim": folder.claim, "folder": folder.folder} for folder in folders]
    return json_response({"source": "logs" if is_log else "events", "folders": listed, "runs": runs})


def points_in(request: Request) -> int:
    """Return the number of points for each series."""
    text = request.query_params.get("points", str(MAX_POINTS))
    if not (text.isascii() and text.isdecimal() and len(text) < 8):
        raise BadRequest(f"points: {text!r} is not a whole number")
    return min(max(int(text), 2), MAX_POINTS)


async def event_runs(
    runtime: Runtime, person: Person, namespace: str, folders: tuple[CurveFolder, ...], *, points: int
) -> list[dict[str, Any]]:
    """Return the runs in folders of claims; with several folders, their names begin with the folder."""
    runs = []
    for folder in folders:
        claim = ClaimRef(namespace=namespace, name=folder.claim)
        token = await runtime.explorers.token(person, claim)
        path = explorer.proxy_path(namespace, explorer.explorer_name(folder.claim), "/curves")
        answer = await person.client.send(
            ClusterRequest(
                method="GET",
                path=path,
                query=(("path", folder.folder), ("points", str(points))),
                headers=((explorer.TOKEN_HEADER, token),),
            )
        )
        body = orjson.loads(answer.body) if answer.body else {}
        if answer.status == 404:
            continue
        if answer.status >= 400:
            runtime.explorers.forget(person, claim)
            raise explorer.error_of(answer.status, body)
        prefix = f"{folder.claim}/{folder.folder}/".replace("//", "/") if len(folders) > 1 else ""
        runs += [{**run, "name": f"{prefix}{run['name']}"} for run in body["runs"]]
    return runs


async def runs_of_log(runtime: Runtime, person: Person, job: Object, *, points: int) -> list[dict[str, Any]]:
    """Return the one run that the leader's log has; none while there is no log."""
    labels = f"{well_known_labels.OWNER_NAME}={name_of(job)}"
    namespace = str(job["metadata"]["namespace"])
    listed = (await person.client.list(PODS, Select(namespace=namespace, labels=labels))).items
    owned = [pod for pod in listed if (controller_of(pod) or {}).get("uid") == uid_of(job)]
    members = replica_pods(owned)
    leader = leader_id(members)
    pods = [pod for pod in last_attempts(members) if pod.place == leader]
    if not pods:
        return []
    spec = next(pod for pod in owned if name_of(pod) == pods[0].name)["spec"]
    subscription = LogSubscription(
        namespace=namespace, pod=pods[0].name, container=spec["containers"][0]["name"], tail=MAX_LINES
    )
    source = PodLogSource(client=person.client, request=subscription, chance=runtime.config.chance)
    lines = [line async for line in _lines(source.read())]
    return log_runs(series_in(lines), points)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[float, str]]:
    count = 0
    async for chunk in chunks:
        for line in chunk.split(b"\n"):
            yield stamped_text(line)
            count += 1
            if count % TURN == 0:
                await asyncio.sleep(0)


ROUTES: tuple[BaseRoute, ...] = (Route("/api/curves/{namespace}/{kind}/{name}", curves),)
