"""What the server tells about itself: versions, groups, kinds."""

from collections.abc import Mapping
from itertools import groupby

from paceline.api.exchange import Answer, Request, answer
from paceline.api.refusal import no_such_path
from paceline.objects.builtin import kubernetes_version
from paceline.objects.meta import Object
from paceline.objects.scheme import Resource, Scheme

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# What each subresource answers with (None: the object itself), and its verbs.
_SUBRESOURCES: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
    "binding": ("Binding", ("create",)),
    "finalize": (None, ("update",)),
    "log": (None, ("get",)),
    "status": (None, ("get", "patch", "update")),
}


class Discovery:
    """The answers about the kinds of one scheme."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        resources = sorted(scheme.resources, key=lambda each: (each.group, each.version, each.plural))
        self._by_version = {
            key: tuple(found) for key, found in groupby(resources, key=lambda each: (each.group, each.version))
        }

    def answer(self, request: Request) -> Answer:
        """Answer a path that is about the server, not about objects."""
        match request.parts:
            case ("version",):
                return answer(_version())
            case ("api",) if _wants_all(request):
                return self._aggregated(core=True)
            case ("apis",) if _wants_all(request):
                return self._aggregated(core=False)
            case ("api",):
                return answer({"kind": "APIVersions", "versions": self._versions(""), "serverAddressByClientCIDRs": []})
            case ("apis",):
                groups = [self._group(name) for name in self._groups()]
                return answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            case ("api", version):
                return answer(self._resources("", version))
            case ("apis", group) if group in self._groups():
                return answer({"kind": "APIGroup", "apiVersion": "v1", **self._group(group)})
            case ("apis", group, version):
                return answer(self._resources(group, version))
            case _:
                raise no_such_path()

    def _groups(self) -> list[str]:
        return list(dict.fromkeys(group for group, _ in self._by_version if group))

    def _versions(self, group: str) -> list[str]:
        return [version for name, version in self._by_version if name == group]

    def _group(self, name: str) -> Object:
        versions = [{"groupVersion": f"{name}/{each}", "version": each} for each in self._versions(name)]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> Object:
        found = self._by_version.get((group, version))
        if found is None:
            raise no_such_path()
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": [line for resource in found for line in _described(resource)],
        }

    def _aggregated(self, *, core: bool) -> Answer:
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_summed_up(each) for each in self._by_version[group, version]],
                        "freshness": "Current",
                    }
                    for version in self._versions(group)
                ],
            }
            for group in ([""] if core else self._groups())
            if self._versions(group)
        ]
        whole = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
        made = answer({**whole, "items": items})
        return Answer(body=made.body, content_type=AGGREGATED)


def _wants_all(request: Request) -> bool:
    clauses = (clause.replace(" ", "") for clause in request.headers.get("accept", "").split(","))
    return any({"as=APIGroupDiscoveryList", "v=v2"} <= set(clause.split(";")) for clause in clauses)


def _described(resource: Resource) -> list[Object]:
    line: Object = {
        "name": resource.plural,
        "singularName": _singular(resource),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        line["shortNames"] = list(resource.short_names)
    if resource.categories:
        line["categories"] = list(resource.categories)
    below = [
        {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": _SUBRESOURCES[name][0] or resource.kind,
            "verbs": list(_SUBRESOURCES[name][1]),
        }
        for name in resource.subresources
    ]
    return [line, *below]


def _summed_up(resource: Resource) -> Object:
    line: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": _singular(resource),
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        line["shortNames"] = list(resource.short_names)
    if resource.categories:
        line["categories"] = list(resource.categories)
    if resource.subresources:
        line["subresources"] = [
            {
                "subresource": name,
                "responseKind": _kind(resource, _SUBRESOURCES[name][0] or resource.kind),
                "verbs": list(_SUBRESOURCES[name][1]),
            }
            for name in resource.subresources
        ]
    return line


def _kind(resource: Resource, kind: str) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": kind}


def _singular(resource: Resource) -> str:
    return resource.singular or resource.kind.lower()


def _version() -> Object:
    known = kubernetes_version()
    major, minor, _ = known.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{known}+paceline",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }
