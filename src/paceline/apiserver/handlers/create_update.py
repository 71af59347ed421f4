"""Create, update, patch and apply: decode, admit, and store with a precondition."""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import orjson

from paceline.apimachinery.builtin.go_json import read_struct
from paceline.apimachinery.field_errors import FieldFault
from paceline.apimachinery.fields.apply import AppliedConfig
from paceline.apimachinery.fields.managed_fields import Author
from paceline.apimachinery.meta import Object, is_deleting, name_of, namespace_of
from paceline.apimachinery.scheme import Resource
from paceline.apiserver import object_strategy as strategy
from paceline.apiserver import status_errors
from paceline.apiserver.admission.asked_by import note_caller
from paceline.apiserver.admission.chain import Admission, reject_unknown_fields
from paceline.apiserver.admission.plugins import mount_token
from paceline.apiserver.config import MAX_TRIES, Server
from paceline.apiserver.encoding.negotiation import render_object, representation_of
from paceline.apiserver.encoding.request_body import MAX_DEPTH, check_depth, is_apply, read_options, read_with_warnings
from paceline.apiserver.handlers.patch import ApplyHandler, Patch, check_patch_type, read_patch
from paceline.apiserver.http_types import HttpRequest, HttpResponse, Warnings, WriteOptions, attach_warnings
from paceline.apiserver.managed_fields import FieldTracker, author_of
from paceline.apiserver.paths import Target, key_for
from paceline.apiserver.slicing import offload
from paceline.errors import AlreadyExists, BadRequest
from paceline.store.store import Stored

log = logging.getLogger(__name__)

# Services are admitted on the event loop. This is more than the annotations of an object may have.
MAX_SERVICE_BYTES = 320 * 1024
# Kinds whose status gets defaults: allocatable resources of a node, addresses of a Service.
_STATUS_DEFAULTED = frozenset({("", "Node"), ("", "Service")})
_META = "meta.v1.ObjectMeta"
# Kinds that an update creates; all others must exist.
_CREATED_BY_UPDATE = frozenset({"Endpoints", "Event", "Lease"})

T = TypeVar("T")

# Returns the object as its author wants it, given the current one.
Edit = Callable[[Object], Object]


class WriteHandler:
    def __init__(self, server: Server, admission: Admission) -> None:
        self._server = server
        self._admission = admission
        self._tracking = FieldTracker(server)
        self._applies = ApplyHandler(self._tracking)

    async def create(self, request: HttpRequest, target: Target) -> HttpResponse:
        if target.resource.namespaced and not target.namespace:
            raise status_errors.method_not_allowed()
        representation_of(request)
        options = read_options(request, "CreateOptions")
        obj, entries, warnings = await self._offload(request, target, partial(self._read, request, target, options))
        with attach_warnings(warnings):
            strategy.set_type_and_namespace(obj, target)
            self._check_namespace(target, name_of(obj))
            strategy.restore_managed_fields(obj, entries)
            author = author_of(request, target)
            stored = await self._create(obj, target, options, author)
        return self._respond(request, target, stored, code=201, warnings=warnings)

    async def _offload(self, request: HttpRequest | int, target: Target, call: Callable[[], T]) -> T:
        """Run work whose cost grows with a request, or with a size, without blocking other requests.

        Services are decoded elsewhere, too, but admitted here: their IPs and ports are allocated one by one.
        """
        if target.resource.kind == "Service":
            if isinstance(request, int):
                return call()
            if len(request.body) > MAX_SERVICE_BYTES:
                message = f"the body of a Service may have {MAX_SERVICE_BYTES} bytes, not {len(request.body)}"
                raise status_errors.too_large(message)
        return await offload(self._server.blocking, request if isinstance(request, int) else len(request.body), call)

    def _read(self, request: HttpRequest, target: Target, options: WriteOptions) -> tuple[Object, Any, Warnings]:
        """Return the object without its managed fields, these, and the warnings."""
        resource = target.resource
        body, duplicates = read_with_warnings(request, resource.kind, needs_kind=not resource.is_builtin)
        self._check_kind(body, resource)
        if problem := _metadata_problem(body, resource):
            raise status_errors.bad_request(f"{resource.kind}: {problem}")
        obj, entries = strategy.split_managed_fields(body)
        warnings = (*duplicates, *self._admission.clean(resource, obj))
        obj.setdefault("metadata", {})
        if warnings and options.validation == "Strict":
            reject_unknown_fields(resource, warnings)
        owner_warnings = strategy.dedup_owner_refs(obj["metadata"])
        return obj, entries, (*(warnings if options.validation == "Warn" else ()), *owner_warnings)

    def _check_kind(self, obj: Object, resource: Resource) -> None:
        if resource.is_builtin:
            if problem := strategy.type_problem(obj, resource):
                raise status_errors.bad_request(problem)
            return
        version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
        if version != resource.api_version:
            raise status_errors.bad_request(f"apiVersion must be {resource.api_version}, not {version}")
        if kind != resource.kind:
            fault = FieldFault("kind", kind, f"must be {resource.kind}")
            raise status_errors.invalid(kind, name_of(obj), (fault,), group=resource.group)

    def _prepare_new(self, obj: Object, target: Target, options: WriteOptions, author: Author | None) -> Object:
        """Return a new object as it is stored, admitted and complete."""
        resource = target.resource
        new = strategy.prepare_for_create(obj, resource, now=self._server.clock.now(), ids=self._server.ids)
        new, entries = strategy.split_managed_fields(new)
        unset = self._tracking.unset_paths(new, resource)
        resource.default(new)
        self._admission.check(resource, new, dry_run=options.dry_run)
        strategy.restore_managed_fields(new, entries)
        if author is not None:
            self._tracking.track_create(new, target, author, unset=unset)
        mount_token(new, resource, self._server)
        note_caller(resource, new, None, options.caller)
        strategy.check_size(new)
        return new

    async def _create(self, obj: Object, target: Target, options: WriteOptions, author: Author | None) -> Stored:
        resource, has_name = target.resource, bool(obj["metadata"].get("name"))
        for remaining in reversed(range(1 if has_name else MAX_TRIES)):
            new = await self._offload(options.size, target, partial(self._prepare_new, obj, target, options, author))
            key = key_for(resource, target.namespace, name_of(new))
            try:
                return await self._store_new(key, new, options)
            except AlreadyExists as error:
                if not remaining:
                    raise status_errors.already_exists(resource, name_of(new)) from error
        raise AssertionError("unreachable: the last try returns or raises")

    async def _store_new(self, key: str, new: Object, options: WriteOptions) -> Stored:
        if not options.dry_run:
            return await self._server.store.create(key, partial(strategy.write, new))
        if self._server.store.get(key) is not None:
            raise AlreadyExists(key)
        return Stored(key=key, value=orjson.dumps(new), revision=0, created=0)

    async def record(self, event: Object) -> None:
        """Store an event of the server itself, unless it is there already."""
        events = self._server.scheme.find("", "v1", "events")
        if events is None:
            return
        target = Target(resource=events, namespace=namespace_of(event), name="")
        try:
            await self._create(event, target, WriteOptions(), None)
        except status_errors.StatusError as error:
            # The deletion must not fail because of its event: the namespace may be terminating.
            log.warning("event not recorded", extra={"about": name_of(event), "error": error.status.message})

    async def replace(self, request: HttpRequest, target: Target) -> HttpResponse:
        representation_of(request)
        options = read_options(request, "UpdateOptions")
        obj, entries, warnings = await self._offload(request, target, partial(self._read, request, target, options))
        strategy.set_type_and_namespace(obj, target, name=target.name)
        revision = obj["metadata"].get("resourceVersion")
        if not revision and target.resource.kind in _CREATED_BY_UPDATE and self._server.store.get(target.key) is None:
            return await self.create(request, replace(target, name=""))
        if not revision and not target.resource.is_builtin:
            self._server.find(target)
            fault = FieldFault("metadata.resourceVersion", 0, "must be specified for an update")
            raise status_errors.invalid(target.resource.plural, target.name, (fault,), group=target.resource.group)
        strategy.restore_managed_fields(obj, entries)

        def edit(old: Object) -> Object:
            self._check_preconditions(obj, old, target)
            return obj

        with attach_warnings(warnings):
            author = author_of(request, target)
            stored = await self.change(target, edit, options=options, author=author)
        return self._respond(request, target, stored, warnings=warnings)

    async def patch(self, request: HttpRequest, target: Target) -> HttpResponse:
        representation_of(request)
        check_patch_type(request, target.resource)
        options = read_options(request, "PatchOptions")
        if is_apply(request):
            return await self._apply(request, target, options)
        reading = partial(read_patch, request, target.resource, self._server.scheme.components)
        patch = await self._offload(request, target, reading)
        warnings: list[str] = []

        def edit(old: Object) -> Object:
            new, warnings[:] = self._patched(patch, old, target, options)
            return new

        with attach_warnings(warnings):
            author = author_of(request, target)
            stored = await self.change(target, edit, options=options, author=author)
        return self._respond(request, target, stored, warnings=tuple(warnings))

    def _patched(self, patch: Patch, old: Object, target: Target, options: WriteOptions) -> tuple[Object, Warnings]:
        resource, result = target.resource, patch.apply(old)
        check_depth(result, MAX_DEPTH + 1, "the patched object")
        if problem := self._patch_problem(result, resource):
            raise status_errors.invalid_patch(problem)
        new, entries = strategy.split_managed_fields(result)
        if target.subresource == "status" and resource.is_builtin:
            # Only the status and metadata are written: of the other fields, check only those that the patch touches.
            written = ("metadata", "status")
            new = {field: value for field, value in new.items() if field in written or value != old.get(field)}
        # Copy: parts are shared with the old object, and cleaning works in place.
        new = strategy.read(orjson.dumps(new))
        try:
            warnings = (*patch.duplicates, *self._admission.clean(resource, new))
        except status_errors.StatusError as error:
            raise status_errors.invalid_patch(error.status.message) from error
        if warnings and options.validation == "Strict":
            raise status_errors.invalid_patch(f"strict decoding error: {', '.join(warnings)}")
        new.setdefault("metadata", {})
        strategy.set_type_and_namespace(new, target, name=target.name)
        self._check_uid(new, old, target)
        self._check_preconditions(new, old, target)
        owner_warnings = strategy.dedup_owner_refs(new["metadata"])
        strategy.restore_managed_fields(new, entries)
        return new, (*(warnings if options.validation == "Warn" else ()), *owner_warnings)

    def _patch_problem(self, new: Any, resource: Resource) -> str:
        """Return why the result of a patch is not an object of its kind, or ""."""
        if not isinstance(new, dict):
            return "the result is not an object"
        if resource.is_builtin:
            problem = strategy.type_problem(new, resource)
        elif not new.get("kind"):
            problem = "the result has no kind"
        else:
            self._check_type(new, resource)
            problem = ""
        return problem or _metadata_problem(new, resource)

    def _check_type(self, new: Object, resource: Resource) -> None:
        for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
            if new.get(field) != expected:
                fault = FieldFault(field, new.get(field), f"must be {expected}")
                group = str(new.get("apiVersion") or "").rpartition("/")[0]
                raise status_errors.invalid(str(new.get("kind")), name_of(new), (fault,), group=group)

    async def _apply(self, request: HttpRequest, target: Target, options: WriteOptions) -> HttpResponse:
        """Apply a configuration to an object, or create the object."""
        config, warnings = await self._offload(request, target, partial(self._applies.read, request, target, options))
        with attach_warnings(warnings):
            code, stored = await self._apply_config(config, target, options)
        return self._respond(request, target, stored, code=code, warnings=warnings)

    async def _apply_config(self, config: AppliedConfig, target: Target, options: WriteOptions) -> tuple[int, Stored]:
        for remaining in reversed(range(MAX_TRIES)):
            try:
                if self._server.store.get(target.key) is None and not target.subresource:
                    return 201, await self._create_applied(config, target, options)
                edit = partial(self._applied, config, target)
                return 200, await self.change(target, edit, options=options)
            except status_errors.StatusError as error:
                # Another request created it meanwhile: apply to that object.
                if not remaining or error.status.reason != "AlreadyExists":
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def _create_applied(self, config: AppliedConfig, target: Target, options: WriteOptions) -> Stored:
        def new_object() -> Object:
            obj = self._applies.created(config, target)
            strategy.set_type_and_namespace(obj, target, name=target.name)
            self._admission.clean(target.resource, obj)
            return obj

        obj = await self._offload(options.size, target, new_object)
        self._check_namespace(target, target.name)
        return await self._create(obj, target, options, None)

    def _applied(self, config: AppliedConfig, target: Target, old: Object) -> Object:
        new = self._applies.onto(old, config, target)
        self._check_uid(new, old, target)
        new, entries = strategy.split_managed_fields(new)
        strategy.set_type_and_namespace(new, target, name=target.name)
        self._admission.clean(target.resource, new)
        self._check_preconditions(new, old, target)
        strategy.restore_managed_fields(new, entries)
        return new

    def _check_uid(self, new: Object, old: Object, target: Target) -> None:
        uid = new["metadata"].get("uid")
        if uid != old["metadata"].get("uid"):
            raise _immutable("metadata.uid", uid, target)

    async def change(
        self, target: Target, edit: Edit, *, options: WriteOptions, author: Author | None = None
    ) -> Stored:
        """Edit the current object and store the result; try again after a concurrent write.

        Without an author, the managed fields are those of the edit.
        """

        async def step(stored: Stored) -> Stored:
            work = partial(self._changed, stored, target, edit, options=options, author=author)
            new = await self._offload(max(options.size, len(stored.value)), target, work)
            if new is None:
                return stored
            if options.dry_run:
                value = strategy.write(new, stored.revision)
                return Stored(key=stored.key, value=value, revision=0, created=stored.created)
            return await self._store(new, stored)

        return await self._server.update(target, step)

    def _changed(
        self, stored: Stored, target: Target, edit: Edit, *, options: WriteOptions, author: Author | None
    ) -> Object | None:
        """Return the result of an edit, admitted and complete; None if nothing changes."""
        old = strategy.read(strategy.in_version(target.resource, stored.value))
        edited = edit(old)
        new, entries = strategy.split_managed_fields(strategy.prepare_for_update(old, edited, target))
        if target.subresource in {"", "finalize"}:
            target.resource.default(new)
            self._admission.check(target.resource, new, old, dry_run=options.dry_run)
        else:
            if (target.resource.group, target.resource.kind) in _STATUS_DEFAULTED:
                target.resource.default(new)
            self._admission.check_status(target.resource, new)
        strategy.restore_managed_fields(new, entries)
        if author is not None:
            self._tracking.track_update(old, new, author, target=target, sent=edited)
        if not target.subresource:
            note_caller(target.resource, new, old, options.caller)
        if strategy.is_same(old, new):
            return None
        strategy.check_size(new)
        return new

    def _respond(
        self, request: HttpRequest, target: Target, stored: Stored, *, code: int = 200, warnings: Warnings = ()
    ) -> HttpResponse:
        body = render_object(request, target.resource, stored, clock=self._server.clock)
        return HttpResponse(code=code, body=body, warnings=warnings)

    async def _store(self, new: Object, stored: Stored) -> Stored:
        render = partial(strategy.write, new)
        if is_deleting(new) and _is_released(new):
            return await self._server.store.delete(stored.key, render, expected=stored.revision)
        return await self._server.store.replace(stored.key, render, expected=stored.revision, urgent=is_deleting(new))

    def _check_preconditions(self, new: Object, old: Object, target: Target) -> None:
        metadata, old_metadata = new["metadata"], old["metadata"]
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            # Only a deletion sets these.
            value = metadata.get(field)
            if value is not None and value != old_metadata.get(field):
                raise _immutable(f"metadata.{field}", value, target)
        revision, uid = metadata.get("resourceVersion"), metadata.get("uid")
        # An empty revision and 0 match any.
        if revision and revision not in {"0", old_metadata["resourceVersion"]}:
            raise status_errors.object_modified(target.resource, target.name)
        if uid and uid != old_metadata["uid"]:
            reason = f"the uid in the request is {uid}, that of the object is {old_metadata['uid']}"
            raise status_errors.conflict(target.resource.plural, target.name, reason, group=target.resource.group)

    def _check_namespace(self, target: Target, name: str) -> None:
        namespaces = self._server.scheme.find("", "v1", "namespaces")
        if not target.namespace or namespaces is None:
            return
        stored = self._server.store.get(key_for(namespaces, "", target.namespace))
        if stored is None:
            raise status_errors.not_found(namespaces, target.namespace)
        if b'"deletionTimestamp"' in stored.value and is_deleting(strategy.read(stored.value)):
            reason = f"unable to create new content in namespace {target.namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {target.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise status_errors.forbidden(target.resource, name, reason, causes=(cause,))


def _immutable(path: str, value: Any, target: Target) -> status_errors.StatusError:
    fault = FieldFault(path, value, "field is immutable")
    return status_errors.invalid(target.resource.kind, target.name, (fault,), group=target.resource.group)


def _is_released(obj: Object) -> bool:
    """Return whether nothing blocks the removal of a deleted object any more."""
    metadata = obj["metadata"]
    is_namespace = obj.get("kind") == "Namespace"
    return not (
        metadata.get("finalizers")
        or metadata.get("deletionGracePeriodSeconds")
        or (is_namespace and (obj.get("spec") or {}).get("finalizers"))
    )


def _metadata_problem(obj: Object, resource: Resource) -> str:
    """Return why metadata cannot be decoded, or ""."""
    metadata = obj.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return "metadata must be an object"
    if metadata is not None and not resource.is_builtin:
        try:
            read_struct(strategy.split_managed_fields(obj)[0]["metadata"], _META)
        except BadRequest as error:
            return str(error)
    return ""
