"""The status of applications, TensorBoards and notebooks, even if it is malformed."""

from paceline.apimachinery.meta import Object
from paceline.errors import BadRequest
from paceline.model.app_status import AppStatus, RecordStatus
from paceline.model.interactive import ServicePhase, ServiceStatus


def status_of(app: Object) -> AppStatus:
    """Return the application's status; a malformed one is reported in `waiting`."""
    try:
        return AppStatus.from_wire(app.get("status") or {})
    except BadRequest as error:
        return AppStatus(waiting=str(error))


def record_status_of(record: Object) -> RecordStatus:
    """Return the result of a revision; a malformed one is reported in `message`."""
    try:
        return RecordStatus.from_wire(record.get("status") or {})
    except BadRequest as error:
        return RecordStatus(message=str(error))


def service_status_of(service: Object) -> ServiceStatus:
    """Return the status of a TensorBoard or notebook; a malformed one is reported in `waiting`."""
    try:
        return ServiceStatus.from_wire(service.get("status") or {})
    except BadRequest as error:
        return ServiceStatus(waiting=str(error))


def is_paused(service: Object) -> bool:
    """Return True if a TensorBoard or notebook is paused and has no pod; False if its status is malformed."""
    return service_status_of(service).phase is ServicePhase.PAUSED
