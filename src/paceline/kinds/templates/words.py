"""Words that values of several templates are made of: numbers to the digit, quantities, ports."""

from typing import Annotated, Any, Literal

from msgspec import Meta

# Text that is a number: what `--set` and forms give, passed on to the digit.
NUMBER = r"^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$"
GPU = "nvidia.com/gpu"
# Whole numbers are exact as fractions up to here.
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
    """Write a number as a trainer is told it: to the digit, without noise."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(value)


def is_set(value: float | str | None) -> bool:
    """Tell whether a hyperparameter is passed on: nothing and zero mean the trainer's own choice."""
    return value is not None and as_text(value) not in ("", "0", "0.0")


def resources_of(cpu: float | str, memory: float | str, gpus: int) -> dict[str, Any]:
    """Write what a container asks for and may use; what is empty is left out."""
    asked = {"cpu": as_text(cpu), "memory": as_text(memory)}
    requests = {name: text for name, text in asked.items() if text}
    limits = {"memory": asked["memory"]} if asked["memory"] else {}
    if gpus:
        limits[GPU] = str(gpus)
    both = {"requests": requests, "limits": limits}
    return {name: each for name, each in both.items() if each}
