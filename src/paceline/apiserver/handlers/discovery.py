"""Discovery: versions, groups, resources, and health."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import groupby

from paceline.apimachinery.builtin.registry import kubernetes_version
from paceline.apimachinery.crd.crd import version_rank
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource, Scheme
from paceline.apiserver.auth.authentication import PUBLIC
from paceline.apiserver.crd.registry import LiveKinds
from paceline.apiserver.http_types import JSON, PLAIN, HttpRequest, HttpResponse, object_response
from paceline.apiserver.status_errors import no_such_path, not_acceptable, page_not_found
from paceline.errors import HostError

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# Response kind (None: that of the object) and verbs of each subresource.
_SUBRESOURCES: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
    "attach": ("{}AttachOptions", ("create", "get")),
    "binding": ("Binding", ("create",)),
    "eviction": ("Eviction", ("create",)),
    "exec": ("{}ExecOptions", ("create", "get")),
    "finalize": (None, ("update",)),
    "log": (None, ("get",)),
    "proxy": ("{}ProxyOptions", ("create", "delete", "get", "patch", "update")),
    "scale": ("Scale", ("get", "patch", "update")),
    "status": (None, ("get", "patch", "update")),
    "token": ("TokenRequest", ("create",)),
}
# Kinds of subresources in another group than the object.
_ELSEWHERE = {
    "Eviction": ("policy", "v1"),
    "Scale": ("autoscaling", "v1"),
    "TokenRequest": ("authentication.k8s.io", "v1"),
}
# A group without stored objects, and a kind that is stored as another one.
_UNSTORED = "metrics.k8s.io"
_STORED_AS = {("events.k8s.io", "Event"): ("", "v1")}
# Kubernetes' order of its groups; it resolves ambiguous short names.
_FIRST = (
    *("events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "storage.k8s.io", "apiextensions.k8s.io"),
    *("scheduling.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "metrics.k8s.io"),
)


class Discovery:
    def __init__(self, kinds: LiveKinds) -> None:
        self._kinds = kinds
        self._current: SchemeDiscovery | None = None

    def respond(self, request: HttpRequest) -> HttpResponse:
        scheme = self._kinds.scheme
        if self._current is None or self._current.scheme is not scheme:
            self._current = SchemeDiscovery(scheme)
        return self._current.respond(request)


@dataclass(slots=True)
class SchemeDiscovery:
    scheme: Scheme
    _by_version: Mapping[tuple[str, str], tuple[Resource, ...]] = field(init=False)

    def __post_init__(self) -> None:
        ordered = sorted(self.scheme.resources, key=_order)
        groups = groupby(ordered, key=lambda resource: (resource.group, resource.version))
        self._by_version = {key: tuple(resources) for key, resources in groups}

    def respond(self, request: HttpRequest) -> HttpResponse:
        if request.parts in {("api",), ("apis",)} and _wants_aggregated(request):
            return self._aggregated(core=request.parts == ("api",))
        match request.parts:
            case ("version",):
                return object_response(_version())
            case ("api",):
                versions = self._versions("")
                return object_response({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []})
            case ("apis",):
                groups = [self._group(name) for name in self._groups()]
                return object_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            case ("api", version) if version not in self._versions(""):
                raise no_such_path()
            case ("api", version):
                return object_response(self._resources("", version))
            case ("apis", group) if group in self._groups():
                return object_response({"kind": "APIGroup", "apiVersion": "v1", **self._group(group)})
            case ("apis", group, version):
                return object_response(self._resources(group, version))
            case ():
                paths = ("/api", "/apis", "/metrics", "/openapi/v3", "/version", *PUBLIC)
                return object_response({"paths": sorted(paths)})
            case _:
                raise page_not_found()

    def _groups(self) -> list[str]:
        return list(dict.fromkeys(group for group, _ in self._by_version if group))

    def _versions(self, group: str) -> list[str]:
        return [version for name, version in self._by_version if name == group]

    def _group(self, name: str) -> Object:
        versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in self._versions(name)]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> Object:
        resources = self._by_version.get((group, version))
        if resources is None:
            raise page_not_found()
        return {
            "kind": "APIResourceList",
            # Like Kubernetes, only for named groups.
            **({"apiVersion": "v1"} if group else {}),
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": [line for resource in resources for line in _api_resource(resource)],
        }

    def _aggregated(self, *, core: bool) -> HttpResponse:
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated_resource(resource) for resource in self._by_version[group, version]],
                        "freshness": "Current",
                    }
                    for version in self._versions(group)
                ],
            }
            for group in ([""] if core else self._groups())
            if self._versions(group)
        ]
        head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
        return replace(object_response({**head, "items": items}), content_type=AGGREGATED)


def _order(resource: Resource) -> tuple[object, ...]:
    place = _FIRST.index(resource.group) if resource.group in _FIRST else len(_FIRST)
    return place, resource.group, version_rank(resource.version), resource.plural


def _wants_aggregated(request: HttpRequest) -> bool:
    clauses = [clause.replace(" ", "") for clause in request.headers.get("accept", "").split(",")]
    if any({"as=APIGroupDiscoveryList", "v=v2"} <= set(clause.split(";")) for clause in clauses):
        return True
    if all("as=APIGroupDiscoveryList" in clause for clause in clauses):
        raise not_acceptable(f"{JSON}, {AGGREGATED}")
    return False


def _api_resource(resource: Resource) -> list[Object]:
    line: Object = {
        "name": resource.plural,
        "singularName": _singular(resource),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    line |= _aliases(resource)
    if "list" in resource.verbs and resource.group != _UNSTORED:
        line["storageVersionHash"] = _storage_hash(resource)
    return [line, *(_api_subresource(resource, name) for name in resource.subresources)]


def _storage_hash(resource: Resource) -> str:
    version = resource.stored_version or resource.version
    group, version = _STORED_AS.get((resource.group, resource.kind), (resource.group, version))
    digest = sha256(f"{group}/{version}/{resource.kind}".encode()).digest()
    return b64encode(digest[:8]).decode()


def _api_subresource(resource: Resource, name: str) -> Object:
    kind, verbs = _subresource_kind(resource, name), _SUBRESOURCES[name][1]
    group, version = _ELSEWHERE.get(kind, ("", ""))
    return {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        **({"group": group, "version": version} if group else {}),
        "kind": kind,
        "verbs": list(verbs),
    }


def _aggregated_resource(resource: Resource) -> Object:
    line: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": _singular(resource),
        "verbs": list(resource.verbs),
    }
    line |= _aliases(resource)
    if resource.subresources:
        line["subresources"] = [
            {
                "subresource": name,
                "responseKind": _kind(resource, _subresource_kind(resource, name)),
                "verbs": list(_SUBRESOURCES[name][1]),
            }
            for name in resource.subresources
        ]
    return line


def _subresource_kind(resource: Resource, name: str) -> str:
    kind = _SUBRESOURCES[name][0]
    return kind.format(resource.kind) if kind else resource.kind


def _kind(resource: Resource, kind: str) -> Object:
    default = ("", "") if resource.is_builtin else (resource.group, resource.version)
    group, version = _ELSEWHERE.get(kind, default)
    return {"group": group, "version": version, "kind": kind}


def _aliases(resource: Resource) -> Object:
    aliases = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {key: names for key, names in aliases.items() if names}


def _singular(resource: Resource) -> str:
    return resource.singular or resource.kind.lower()


def _version() -> Object:
    release = kubernetes_version()
    major, minor, _ = release.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"{release}+paceline",
        **dict.fromkeys(("gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"), ""),
    }


def health(request: HttpRequest, failure: HostError | None, *, has_token: bool) -> HttpResponse:
    """Answer a health path; only callers with a token get the reason of a failure.

    A store that accepts no more writes stays broken until the next start. So all three paths report it: readyz keeps
    requests away, livez and healthz let a supervisor restart the server.
    """
    name, _, part = request.path.strip("/").partition("/")
    if part == "ping" or (failure is None and "verbose" not in request.query):
        return HttpResponse(body=b"ok", content_type=PLAIN)
    if failure is None:
        return HttpResponse(body=f"[+]ping ok\n[+]store ok\n{name} check passed\n".encode(), content_type=PLAIN)
    reason = str(failure) if has_token else "reason withheld"
    text = f"[+]ping ok\n[-]store failed: {reason}\n{name} check failed\n"
    return HttpResponse(code=503, body=text.encode(), content_type=PLAIN)
