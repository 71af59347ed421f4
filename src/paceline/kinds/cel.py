"""Rules of CustomResourceDefinitions in CEL, which a real API server enforces before an object is stored.

A type of a spec declares its rules beside the check that the embedded API server runs; both report the same fields.
"""

from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Meta

VALIDATIONS = "x-kubernetes-validations"

Reason = Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden", "FieldValueDuplicate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CelRule:
    """A condition that must hold, and the message if it does not."""

    rule: str
    message: str = ""
    # A CEL expression of the message, for one that contains values.
    message_expression: str = ""
    # The field below the value that has the rule, such as `.path`; empty: the value itself.
    field: str = ""
    reason: Reason = "FieldValueInvalid"

    def to_wire(self) -> dict[str, str]:
        """Return an entry of `x-kubernetes-validations`."""
        wire = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "fieldPath": self.field,
            "reason": "" if self.reason == "FieldValueInvalid" else self.reason,
        }
        return {key: value for key, value in wire.items() if value}


def obeys(*rules: CelRule) -> Meta:
    """Return rules of one field, as metadata of its type."""
    return Meta(extra_json_schema={VALIDATIONS: [rule.to_wire() for rule in rules]})


def with_rules(schema: dict[str, Any], rules: tuple[CelRule, ...]) -> dict[str, Any]:
    """Return a schema with rules added."""
    if not rules:
        return schema
    return {**schema, VALIDATIONS: [*schema.get(VALIDATIONS, ()), *(rule.to_wire() for rule in rules)]}


def quoted(text: str) -> str:
    """Return text as a CEL string."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def is_set(*fields: str) -> str:
    """Return the condition that a string or list at a path below `self` exists and is not empty."""
    path = "".join(f".?{field}" for field in fields)
    return f"self{path}.optMap(v, size(v) > 0).orValue(false)"


def is_on(*fields: str) -> str:
    """Return the condition that a switch at a path below `self` exists and is true."""
    path = "".join(f".?{field}" for field in fields)
    return f"self{path}.orValue(false)"
