"""What is worked out from the schemas of kinds: which fields there are, how objects are made up, what is wrong."""

from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.fields.typed import Type, Types
from paceline.apimachinery.schema import Shape, Shapes
from paceline.apimachinery.scheme import ByKind, Resource
from paceline.apiserver.crd.schema_validation import Validators


class SchemaCache:
    """Values derived from schemas, computed on first use. Servers with the same kinds may share one cache."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        shapes, types = Shapes(components), Types(components)
        self.validators = Validators(components)
        self._shapes = ByKind(lambda kind: shapes.of_object(kind.schema, structural=kind.is_structural))
        self._types = ByKind(lambda kind: types.of_object(kind.schema))

    def shape_of(self, resource: Resource) -> Shape:
        return self._shapes.of(resource)

    def type_of(self, resource: Resource) -> Type:
        return self._types.of(resource)
