"""The next revision of an application: other values, or those of an earlier revision.

`POST /api/apps/NAMESPACE/NAME/upgrade/preview` says what would change, `POST /api/apps/NAMESPACE/NAME/upgrade` does it.
"""

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from paceline.apimachinery.meta import Object, annotations_of, controller_of, name_of, namespace_of, uid_of
from paceline.client.interface import Cluster, Collection, Select
from paceline.console.manifests.templates import APPS, faults_of, rendered
from paceline.console.people import person_of
from paceline.console.responses import json_response, read_json
from paceline.errors import BadRequest, Conflict, Invalid, NotFound
from paceline.kinds.apps.expand import digest_of, stem_of_app
from paceline.kinds.apps.job_record import PLURAL
from paceline.kinds.kind_types import OWN_GROUP, VERSION
from paceline.model import well_known_labels
from paceline.presentation.apps.app_change import noted, reject_unchanged, rolled_back, with_values
from paceline.presentation.apps.app_summary import status_of

RECORDS = Collection(group=OWN_GROUP, version=VERSION, plural=PLURAL)
# Number of tries when the controller writes the status at the same time.
MAX_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRevision:
    """What a person chooses for the next revision: values, or the number of an earlier revision."""

    values: Object | None = None
    revision: int = 0

    def of(self, app: Object, records: dict[int, Object]) -> Object:
        """Return the application with what was chosen; raise NotFound if the revision is not recorded."""
        if self.values is not None:
            return with_values(app, self.values)
        if self.revision not in records:
            numbers = ", ".join(map(str, sorted(records))) or "none"
            raise NotFound(f"{name_of(app)} has no revision {self.revision}; there are: {numbers}")
        return rolled_back(app, records[self.revision])


def choice_in(body: Object) -> NextRevision:
    """Return what a request chooses; raise BadRequest unless it is either values or a revision."""
    values, revision = body.get("values"), body.get("revision")
    if (values is None) == (revision is None):
        raise BadRequest("set either values or revision")
    if values is not None and not isinstance(values, dict):
        raise BadRequest("values must be an object")
    if revision is not None and (not isinstance(revision, int) or isinstance(revision, bool)):
        raise BadRequest("revision must be a number")
    return NextRevision(values=values, revision=revision or 0)


async def preview_upgrade(request: Request) -> Response:
    """Return what the next revision would change, and the state of the application that it would follow."""
    choice, client = choice_in(await read_json(request)), person_of(request).client
    app = await client.get(APPS, request.path_params["namespace"], request.path_params["name"])
    records = await _records(client, app)
    updated = choice.of(app, records)
    result = rendered(updated, app, records.get(status_of(app).revision))
    return json_response({**result, **_seen(app), "isSame": digest_of(app) == digest_of(updated)})


def _seen(app: Object) -> Object:
    """Return the state to which a preview belongs."""
    return {
        "uid": uid_of(app),
        "generation": _generation(app),
        "current": status_of(app).revision,
        "askedBy": annotations_of(app).get(well_known_labels.ASKED_BY, ""),
    }


async def upgrade(request: Request) -> Response:
    """Write the next revision; raise Conflict and change nothing if the spec is not the one that the person saw."""
    body = await read_json(request)
    choice, person = choice_in(body), person_of(request)
    if not isinstance(body.get("uid"), str) or not isinstance(body.get("generation"), int):
        raise BadRequest("set uid and generation to those of the application that you saw")
    for remaining in reversed(range(MAX_TRIES)):
        app = await person.client.get(APPS, request.path_params["namespace"], request.path_params["name"])
        require_seen(app, body)
        updated = choice.of(app, await _records(person.client, app) if choice.revision else {})
        reject_unchanged(app, updated)
        if faults := faults_of(updated):
            raise Invalid(faults)
        try:
            written = await person.client.replace(APPS, noted(updated, person.name))
        except Conflict:
            # The controller writes the status at any time; whether the spec has changed, the next look tells.
            if not remaining:
                raise
            continue
        return json_response({"revision": status_of(app).revision + 1, "generation": _generation(written)})
    raise AssertionError("unreachable: the last try returns or raises")


def require_seen(app: Object, body: Object) -> None:
    """Raise Conflict unless an application is the one that a person saw, with the spec that it had then."""
    name = f"TrainingApp {namespace_of(app)}/{name_of(app)}"
    if uid_of(app) != body["uid"]:
        raise Conflict(f"{name} was deleted, and another one has its name; nothing was changed")
    if _generation(app) != body["generation"]:
        raise Conflict(f"{name} was changed meanwhile; nothing was changed by this request")


def _generation(app: Object) -> Any:
    return (app.get("metadata") or {}).get("generation")


async def _records(client: Cluster, app: Object) -> dict[int, Object]:
    """Return the specs of the records of an application's revisions, by number."""
    labels = f"{well_known_labels.APP}={stem_of_app(name_of(app))}"
    page = await client.list(RECORDS, Select(namespace=namespace_of(app), labels=labels))
    app_records = (record for record in page.items if (controller_of(record) or {}).get("uid") == uid_of(app))
    return {int(record["spec"]["revision"]): record["spec"] for record in app_records}


ROUTES: tuple[BaseRoute, ...] = (
    Route("/api/apps/{namespace}/{name}/upgrade", upgrade, methods=["POST"]),
    Route("/api/apps/{namespace}/{name}/upgrade/preview", preview_upgrade, methods=["POST"]),
)
