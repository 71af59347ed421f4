"""Times as Kubernetes writes them."""

from datetime import UTC, datetime

_SECONDS = len("2030-01-31T12:00:00")


def to_wire(moment: datetime) -> str:
    """Write a moment to the second, as object metadata and conditions carry it."""
    there = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    # Without the offset, which is always the same.
    return there.isoformat(timespec="seconds")[:_SECONDS] + "Z"


def to_wire_micro(moment: datetime) -> str:
    """Write a moment to the microsecond, as leases and events carry it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_from(text: str) -> datetime:
    """Read a moment in UTC that anybody may have written; ValueError when there is no such moment."""
    try:
        return from_wire(text).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is before the first year or after the last one") from error


def from_wire(text: str) -> datetime:
    """Read either form back; ValueError when it is neither."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
