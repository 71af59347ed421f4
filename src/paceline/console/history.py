"""`/api/history`: the jobs of the past as rows, page by page."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from paceline.apimachinery.name_validation import label_problem
from paceline.client.interface import Collection, Select
from paceline.console.people import person_of
from paceline.console.responses import json_response
from paceline.errors import BadRequest
from paceline.kinds.apps.job_record import PLURAL
from paceline.kinds.kind_types import OWN_GROUP, VERSION
from paceline.model import well_known_labels
from paceline.presentation.job_history import history_row

RECORDS = Collection(group=OWN_GROUP, version=VERSION, plural=PLURAL)
PAGE = 500


async def history(request: Request) -> Response:
    """Answer with some rows, and what to ask for next; a page is read at the revision of the first one."""
    query = request.query_params
    namespace = query.get("namespace", "")
    if namespace and (problem := label_problem(namespace)):
        raise BadRequest(f"namespace {namespace[:80]!r}: {problem}")
    select = Select(namespace=namespace, labels=well_known_labels.JOB_UID)
    page = await person_of(request).client.page(RECORDS, select, limit=PAGE, after=query.get("after", ""))
    return json_response({"rows": [history_row(record) for record in page.items], "after": page.next})


ROUTES: tuple[BaseRoute, ...] = (Route("/api/history", history),)
