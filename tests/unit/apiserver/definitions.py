"""Definitions for tests: a kind with a bit of everything."""

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LAMPS = "/apis/home.test/v1/namespaces/default/lamps"

SPEC = {
    "type": "object",
    "description": "What is wanted.",
    "properties": {
        "color": {"type": "string", "enum": ["red", "green"], "default": "red", "description": "Its color."},
        "replicas": {"type": "integer", "format": "int32", "minimum": 0},
        "port": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True},
        "code": {"type": "string", "pattern": "^(?i)[a-z]+$"},
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "empty": {"type": "object"},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 3}},
            },
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "inner": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}
STATUS = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
            },
        },
    },
}


def version(name="v1", *, storage=True, **parts):
    """One version of a lamp."""
    schema = {"type": "object", "description": "It shines.", "properties": {"spec": SPEC, "status": STATUS}}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        **parts,
    }


def definition(plural="lamps", kind="Lamp", *, versions=None, scope="Namespaced", **names):
    """A definition of lamps."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.home.test"},
        "spec": {
            "group": "home.test",
            "scope": scope,
            "names": {"kind": kind, "plural": plural, **names},
            "versions": versions or [version()],
        },
    }


def lamp(name="a", /, **spec):
    """A lamp."""
    return {"apiVersion": "home.test/v1", "kind": "Lamp", "metadata": {"name": name}, "spec": spec}


def conditions(obj):
    """The conditions of a definition, by type."""
    return {each["type"]: (each["status"], each["reason"]) for each in obj["status"]["conditions"]}
