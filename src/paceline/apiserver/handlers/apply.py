"""Server-side apply: the body says what its author wants of an object, which may not even be there yet."""

from dataclasses import replace

from paceline.apimachinery.fields.apply import AppliedConfig, Clashes, apply, named_author, note_last_applied
from paceline.apimachinery.fields.fieldset import spell
from paceline.apimachinery.fields.managed_fields import APPLY, from_wire, to_wire
from paceline.apimachinery.fields.typed import faults
from paceline.apimachinery.meta import Object, name_of
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.encoding.request_body import read_applied
from paceline.apiserver.http_types import HttpRequest, WriteOptions
from paceline.apiserver.managed_fields import FieldTracker, author_of, ignored_paths
from paceline.apiserver.paths import Target
from paceline.errors import BadRequest


class ApplyHandler:
    """Works out what becomes of objects that somebody applies something to."""

    def __init__(self, tracking: FieldTracker) -> None:
        self._tracking = tracking

    def read(
        self, request: HttpRequest, target: Target, options: WriteOptions
    ) -> tuple[AppliedConfig, tuple[str, ...]]:
        """Read what is said, and what has to be told about how it is written."""
        obj, twice = read_applied(request.body)
        if twice and options.validation == "Strict":
            listed = "\n  ".join(twice)
            why = f"error converting YAML to JSON: yaml: unmarshal errors:\n  {listed}"
            raise status_errors.bad_request(f"error strict decoding YAML: {why}")
        self._check(obj, target)
        author = author_of(request, target, operation=APPLY)
        said = AppliedConfig(author=author, obj=obj, force=options.force, ignored=ignored_paths(target))
        return said, twice if options.validation == "Warn" else ()

    def _check(self, obj: Object, target: Target) -> None:
        resource = target.resource
        version, kind = (part if isinstance(part := obj.get(name), str) else "" for name in ("apiVersion", "kind"))
        if (version, kind) != (resource.api_version, resource.kind):
            group, _, short = version.rpartition("/")
            raise status_errors.bad_request(f"invalid object type: {group}/{short}, Kind={kind}")
        metadata = obj.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise status_errors.bad_request("metadata.managedFields must be nil")
        wrong = tuple(faults(self._tracking.type_of(resource), obj))
        if wrong:
            group = f"{resource.group}/{resource.version}, Kind={kind}"
            inner = metadata if isinstance(metadata, dict) else {}
            where = f"{inner.get('namespace') or ''}/{inner.get('name') or ''}; {group}"
            listed = wrong[0] if len(wrong) == 1 else "errors:\n  " + "\n  ".join(wrong)
            raise status_errors.unfit(f"failed to create typed patch object ({where}): {listed}")

    def onto(self, live: Object, said: AppliedConfig, target: Target) -> Object:
        """Give an object with what is said about it, and whose its parts are then."""
        metadata = {"name": target.name, **(said.obj.get("metadata") or {})}
        if target.namespace:
            metadata.setdefault("namespace", target.namespace)
        said = replace(said, obj={**said.obj, "metadata": metadata})
        return self._made(live, said, target)

    def newborn(self, said: AppliedConfig, target: Target) -> Object:
        """Give an object that is only what is said about it."""
        metadata = said.obj.get("metadata") or {}
        name = metadata.get("name")
        if not name:
            why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
            raise status_errors.bad_request(why)
        if uid := metadata.get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status_errors.conflict(target.resource.plural, target.name, why, group=target.resource.group)
        made = self._made(None, said, target)
        return {**made, "metadata": {**made["metadata"], "resourceVersion": ""}}

    def _made(self, live: Object | None, said: AppliedConfig, target: Target) -> Object:
        known = self._tracking.type_of(target.resource)
        there = from_wire(live["metadata"].get("managedFields")) if live else {}
        try:
            new, managed = apply(known, live, there, said=said, now=self._tracking.now)
        except Clashes as error:
            causes = tuple(
                {
                    "reason": "FieldManagerConflict",
                    "message": f"conflict with {named_author(clash.author)}",
                    "field": spell(clash.path),
                }
                for clash in error.clashes
            )
            raise status_errors.apply_conflict(str(error), causes) from error
        except BadRequest as error:
            raise status_errors.bad_request(f"failed to merge {name_of(said.obj)}: {error}") from error
        new = object_strategy.read(object_strategy.dumps(note_last_applied(new, said)))
        if managed:
            new["metadata"]["managedFields"] = to_wire(managed)
        return new
