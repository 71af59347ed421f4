"""Promises about definitions: what they make a cluster serve, and how their objects are kept."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paceline.apimachinery.meta import Object, name_of
from paceline.client.interface import CRDS, Collection
from paceline.errors import BadRequest, Invalid, NotFound, PacelineError
from paceline.testing.contract.target import DEADLINE_SECONDS, Promise, Subject

LOOK_SECONDS = 0.05
SPEC: Object = {
    "type": "object",
    "properties": {
        "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "replicas": {"type": "integer", "minimum": 0},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "port": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True},
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
    },
}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def _lamps(s: Subject, version: str = "v1") -> Collection:
    # The cluster may have other guests, so every subject has a group of its own.
    return Collection(group=f"{s.namespace}.example.com", version=version, plural="lamps")


def _definition(s: Subject, **names: Any) -> Object:
    group = _lamps(s).group
    names = {"plural": "lamps", "kind": "Lamp", **names}
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": SPEC, "status": status}}
    version = {"schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}, "scale": SCALE}}
    versions = [
        {"name": "v1", "served": True, "storage": True, **version},
        {"name": "v1beta1", "served": True, "storage": False, **version},
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


def _lamp(s: Subject, name: str = "a", /, **spec: Any) -> Object:
    meta = {"namespace": s.namespace, "name": name}
    return {"apiVersion": f"{_lamps(s).group}/v1", "kind": "Lamp", "metadata": meta, "spec": spec}


async def _until(look: Callable[[], Awaitable[Object | None]]) -> Object:
    """Look until there is something: a real server needs a moment between a definition and its effect."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            if (value := await look()) is not None:
                return value
            await asyncio.sleep(LOOK_SECONDS)


async def _settled(s: Subject, name: str = "") -> Object:
    """Give a definition once it has been decided whether it is served."""

    async def look() -> Object | None:
        crd = await s.cluster.get(CRDS, "", name or f"lamps.{_lamps(s).group}")
        states = _conditions(crd)
        return crd if states.get("NamesAccepted") == "False" or states.get("Established") == "True" else None

    return await _until(look)


async def _defined(s: Subject) -> Collection:
    """Define lamps and give where they are, once they are."""
    await s.cluster.create(CRDS, _definition(s))

    async def look() -> Object | None:
        try:
            return {"items": (await s.cluster.list(_lamps(s))).items}
        except PacelineError:
            return None

    await _until(look)
    return _lamps(s)


def _conditions(definition: Object) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in definition["status"].get("conditions") or ()}


async def a_definition_is_completed_and_established(s: Subject) -> None:
    await s.cluster.create(CRDS, _definition(s))
    crd = await _settled(s)

    assert crd["spec"]["names"] == {
        "plural": "lamps",
        "kind": "Lamp",
        "singular": "lamp",
        "listKind": "LampList",
    }
    assert crd["status"]["acceptedNames"] == crd["spec"]["names"]
    assert crd["status"]["storedVersions"] == ["v1"]
    assert _conditions(crd) == {"NamesAccepted": "True", "Established": "True"}


async def what_is_defined_is_served(s: Subject) -> None:
    where = await _defined(s)
    lamp = await s.cluster.create(where, _lamp(s))

    assert lamp == await s.cluster.get(where, s.namespace, "a")
    assert lamp["metadata"]["generation"] == 1


async def objects_are_completed_as_the_schema_says(s: Subject) -> None:
    where = await _defined(s)
    spec = {"color": None, "note": None, "free": {"any": {"thing": 1}}, "parts": [{"name": "x"}], "port": "http"}
    lamp = await s.cluster.create(where, _lamp(s, **spec))

    assert lamp["spec"] == {
        "color": "red",
        "note": None,
        "free": {"any": {"thing": 1}},
        "parts": [{"name": "x", "count": 3}],
        "port": "http",
    }


async def objects_are_refused_as_the_schema_says(s: Subject) -> None:
    where = await _defined(s)
    twice = [{"name": "x"}, {"name": "x"}]
    cases: tuple[tuple[str, Object], ...] = (
        ("spec.color", {"color": "pink"}),
        ("spec.replicas", {"replicas": -1}),
        ("spec.port", {"port": True}),
        ("spec.parts[0].name", {"parts": [{}]}),
        ("spec.parts[1]", {"parts": twice}),
    )
    for path, spec in cases:
        with pytest.raises(Invalid) as caught:
            await s.cluster.create(where, _lamp(s, **spec))
        assert path in {fault.path for fault in caught.value.faults}
    with pytest.raises(BadRequest, match=r'unknown field "spec\.colour"'):
        await s.cluster.create(where, _lamp(s, colour="red"))
    assert (await s.cluster.list(where)).items == ()


async def versions_are_two_views_of_one_object(s: Subject) -> None:
    where, older = await _defined(s), _lamps(s, "v1beta1")
    lamp = await s.cluster.create(where, _lamp(s))
    seen = await s.cluster.get(older, s.namespace, "a")
    changed = await s.cluster.patch(older, (s.namespace, "a"), {"spec": {"color": "green"}})
    now = await s.cluster.get(where, s.namespace, "a")

    assert seen["apiVersion"] == f"{where.group}/v1beta1"
    assert seen["spec"] == lamp["spec"]
    assert changed["metadata"]["generation"] == 2
    assert (now["apiVersion"], now["spec"]["color"]) == (f"{where.group}/v1", "green")


async def a_scale_is_another_door_to_the_replicas(s: Subject) -> None:
    where, key = await _defined(s), (s.namespace, "a")
    await s.cluster.create(where, _lamp(s, replicas=1))
    scaled = await s.cluster.patch(where, key, {"spec": {"replicas": 4}}, subresource="scale")
    now = await s.cluster.get(where, *key)

    assert (scaled["kind"], scaled["spec"], scaled["status"]) == ("Scale", {"replicas": 4}, {"replicas": 0})
    assert (now["spec"]["replicas"], now["metadata"]["generation"]) == (4, 2)
    with pytest.raises(Invalid):
        await s.cluster.patch(where, key, {"spec": {"replicas": -1}}, subresource="scale")


async def a_faulty_definition_is_refused_with_every_path(s: Subject) -> None:
    definition = _definition(s)
    first = definition["spec"]["versions"][0]
    first["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"properties": {}}}}}
    first["storage"] = False
    definition["spec"]["scope"] = "Everywhere"
    with pytest.raises(Invalid) as caught:
        await s.cluster.create(CRDS, definition)

    inner = "spec.versions[0].schema.openAPIV3Schema.properties[spec].type"
    assert {"spec.scope", "spec.versions", inner} <= {fault.path for fault in caught.value.faults}


async def names_that_others_have_are_not_accepted(s: Subject) -> None:
    await _defined(s)
    other = await s.cluster.create(CRDS, _definition(s, plural="lanterns", kind="Lantern", shortNames=["lamp"]))
    definition = await _settled(s, name_of(other))

    assert _conditions(definition) == {"NamesAccepted": "False", "Established": "False"}


async def the_kind_of_a_definition_stays(s: Subject) -> None:
    await _defined(s)
    patch = {"spec": {"names": {"kind": "Torch", "listKind": "TorchList"}}}
    with pytest.raises(Invalid) as caught:
        await s.cluster.patch(CRDS, ("", f"lamps.{_lamps(s).group}"), patch)
    assert "spec.names.kind" in {fault.path for fault in caught.value.faults}


async def objects_go_with_their_definition(s: Subject) -> None:
    where, key = await _defined(s), ("", f"lamps.{_lamps(s).group}")
    await s.cluster.create(where, _lamp(s))
    await s.cluster.delete(CRDS, key)

    async def look() -> Object | None:
        try:
            await s.cluster.get(CRDS, *key)
        except NotFound:
            return {}
        return None

    await _until(look)
    await _defined(s)
    assert (await s.cluster.list(where)).items == ()


PROMISES: tuple[Promise, ...] = (
    a_definition_is_completed_and_established,
    what_is_defined_is_served,
    objects_are_completed_as_the_schema_says,
    objects_are_refused_as_the_schema_says,
    versions_are_two_views_of_one_object,
    a_scale_is_another_door_to_the_replicas,
    a_faulty_definition_is_refused_with_every_path,
    names_that_others_have_are_not_accepted,
    the_kind_of_a_definition_stays,
    objects_go_with_their_definition,
)
