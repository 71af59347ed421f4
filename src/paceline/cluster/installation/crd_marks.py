"""The marks on our CRDs: their owner and version, so that an install never replaces a CRD of another owner."""

import re
from collections.abc import Iterable, Iterator

from paceline import __version__
from paceline.apimachinery.meta import Object, annotations_of, name_of

OWNER, VERSION = "paceline.dev/owner", "paceline.dev/version"
US = "paceline"
_NUMBERS = re.compile(r"\d+")


def marked(definition: Object) -> Object:
    """Return a CRD of ours with the marks."""
    metadata = definition["metadata"]
    marks = {OWNER: US, VERSION: __version__}
    return {**definition, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **marks}}}


def is_ours(definition: Object) -> bool:
    """Return whether a CRD in a cluster has our mark."""
    return annotations_of(definition).get(OWNER) == US


def version_of(definition: Object) -> str:
    """Return the version of Paceline that wrote a CRD; empty if it does not say."""
    return annotations_of(definition).get(VERSION, "")


def is_newer(version: str, other: str) -> bool:
    """Return whether a version follows another one."""
    return _numbers(version) > _numbers(other)


def problems(current: Iterable[Object]) -> Iterator[str]:
    """Yield why CRDs in a cluster must not be replaced by ours, a sentence for each reason."""
    stored = list(current)
    if foreign := [name_of(definition) for definition in stored if not is_ours(definition)]:
        names = ", ".join(sorted(foreign))
        yield f"these CRDs exist and are not marked as Paceline's: {names}; another product may use them"
    newest = max((version_of(definition) for definition in stored if is_ours(definition)), key=_numbers, default="")
    if newest and is_newer(newest, __version__):
        yield f"the CRDs are of Paceline {newest}, which is newer than this one ({__version__})"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in _NUMBERS.findall(version)[:3])
