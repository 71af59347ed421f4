"""Types of values that several templates share: exact numbers, quantities, ports."""

from typing import Annotated, Any, Literal

from msgspec import Meta

# A string that is a number, from `--set` or a form; it is passed on unchanged.
NUMBER = r"^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$"
GPU = "nvidia.com/gpu"
# Up to here a float represents integers exactly.
MAX_EXACT = 1e16

Port = Annotated[int, Meta(ge=1, le=65535)]
Policy = Literal["Always", "IfNotPresent", "Never"]
Number = Annotated[
    int | float | str,
    Meta(extra_json_schema={"anyOf": [{"type": "number"}, {"type": "string", "pattern": NUMBER}]}),
]
Quantity = Annotated[int | float | str, Meta(extra_json_schema={"anyOf": [{"type": "number"}, {"type": "string"}]})]
Words = tuple[str, ...]


def as_text(value: float | str) -> str:
    """Return a number as the string that a trainer gets, with every digit."""
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT:
        return str(int(value))
    return str(value)


def is_set(value: float | str | None) -> bool:
    """Return whether a hyperparameter is passed on; if it is empty or 0, the trainer uses its own default."""
    return value is not None and as_text(value) not in ("", "0", "0.0")


def resources_of(cpu: float | str, memory: float | str, gpus: int) -> dict[str, Any]:
    """Return the resources of a container, without empty values."""
    amounts = {"cpu": as_text(cpu), "memory": as_text(memory)}
    requests = {name: text for name, text in amounts.items() if text}
    limits = {"memory": amounts["memory"]} if amounts["memory"] else {}
    if gpus:
        limits[GPU] = str(gpus)
    resources = {"requests": requests, "limits": limits}
    return {name: group for name, group in resources.items() if group}
