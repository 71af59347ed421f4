"""Timestamps in Kubernetes' wire form."""

from datetime import UTC, datetime

_SECONDS = len("2030-01-31T12:00:00")


def to_wire(moment: datetime) -> str:
    """Return a timestamp with seconds, as in object metadata and conditions."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    # Cut off the offset, which is always +00:00.
    return utc.isoformat(timespec="seconds")[:_SECONDS] + "Z"


def to_wire_micro(moment: datetime) -> str:
    """Return a timestamp with microseconds, as in leases and events."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_from(text: str) -> datetime:
    """Return the time, in UTC, of text from any author; raise ValueError if there is no such time."""
    try:
        return from_wire(text).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is before the first year or after the last one") from error


def from_wire(text: str) -> datetime:
    """Return the time of either form; raise ValueError if it is neither."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
