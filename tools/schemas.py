"""Writes src/paceline/apimachinery/builtin/ from a real server: what the built-in kinds look like.

schemas.json holds every schema that the kinds below reach, as the server publishes them but
without descriptions; resources.json holds their names, verbs and subresources from discovery.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paceline.testing.real.kube import KUBERNETES_VERSION, RealKube, find_assets, real_kube

FOLDER = Path(__file__).parent.parent / "src/paceline/apimachinery/builtin"

CORE, META = "io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

# What is taken of each group: the names of its schemas, whose last part is the kind.
WANTED: dict[str, tuple[str, ...]] = {
    "v1": (
        *(
            CORE + kind
            for kind in (
                "Binding",
                "ConfigMap",
                "Endpoints",
                "Event",
                "LimitRange",
                "Namespace",
                "Node",
                "PersistentVolume",
                "PersistentVolumeClaim",
                "Pod",
                "PodTemplateSpec",
                "ResourceQuota",
                "Secret",
                "Service",
                "ServiceAccount",
            )
        ),
        *(META + kind for kind in ("DeleteOptions", "LabelSelector", "ListMeta", "ObjectMeta", "Status")),
    ),
    "apiextensions.k8s.io/v1": (EXTENSIONS + "CustomResourceDefinition",),
    "authentication.k8s.io/v1": ("io.k8s.api.authentication.v1.SelfSubjectReview",),
    "authorization.k8s.io/v1": (
        "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
        "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    ),
    "coordination.k8s.io/v1": ("io.k8s.api.coordination.v1.Lease",),
    "discovery.k8s.io/v1": ("io.k8s.api.discovery.v1.EndpointSlice",),
    "events.k8s.io/v1": ("io.k8s.api.events.v1.Event",),
    "scheduling.k8s.io/v1": ("io.k8s.api.scheduling.v1.PriorityClass",),
    "storage.k8s.io/v1": ("io.k8s.api.storage.v1.StorageClass",),
}

FACTS = ("name", "singularName", "namespaced", "kind", "shortNames", "categories", "verbs")
SUBRESOURCE_FACTS = ("group", "version", "kind", "verbs")

# Under these keys stand names of the author's choosing, so one called "description" is a field.
NAMED = frozenset({"properties", "patternProperties", "definitions"})
REF = "#/components/schemas/"

Json = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the files, write nothing")
    check = parser.parse_args().check
    assets = find_assets()
    if assets is None:
        print("schemas: no kube-apiserver; run tools/kube/build first", file=sys.stderr)
        return 1
    with real_kube(assets) as kube:
        version = get(kube, "/version")["gitVersion"]
        files = {
            "schemas.json": page(version, "schemas", schemas(kube)),
            "resources.json": page(version, "resources", resources(kube)),
        }
    if version != KUBERNETES_VERSION:
        print(f"schemas: the server is {version}, not {KUBERNETES_VERSION}", file=sys.stderr)
        return 1
    return compare(files) if check else write(files)


def get(kube: RealKube, path: str) -> Json:
    code, body = kube.get(path)
    if code != 200:
        sys.exit(f"schemas: GET {path} gave {code}: {body.decode()}")
    answer: Json = json.loads(body)
    return answer


def schemas(kube: RealKube) -> Json:
    """Every schema that a wanted kind reaches, by name."""
    found: Json = {}
    for group, names in WANTED.items():
        published = get(kube, f"/openapi/v3/{root(group)}")["components"]["schemas"]
        waiting = list(names)
        reached: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            schema = without_descriptions(published[name])
            if found.setdefault(name, schema) != schema:
                sys.exit(f"schemas: {name} differs between groups; see {group}")
            waiting.extend(references(schema))
    return found


def without_descriptions(schema: Json) -> Json:
    kept: Json = {}
    for key, value in schema.items():
        if key in NAMED:
            kept[key] = {name: without_descriptions(one) for name, one in value.items()}
        elif key in {"default", "enum"}:
            kept[key] = value
        elif isinstance(value, dict):
            kept[key] = without_descriptions(value)
        elif isinstance(value, list):
            kept[key] = [without_descriptions(x) if isinstance(x, dict) else x for x in value]
        elif key != "description":
            kept[key] = value
    return kept


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(ref := value.get("$ref"), str):
            yield ref.removeprefix(REF)
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def resources(kube: RealKube) -> Json:
    """The wanted kinds that have a path, by "apiVersion/plural"."""
    found: Json = {}
    for group, names in WANTED.items():
        kinds = {name.rpartition(".")[2] for name in names}
        listed = get(kube, f"/{root(group)}")["resources"]
        for entry in listed:
            if entry["kind"] in kinds and "/" not in entry["name"]:
                found[f"{group}/{entry['name']}"] = {
                    "apiVersion": group,
                    **{key: entry[key] for key in FACTS if key in entry},
                    "subresources": subresources_of(entry["name"], listed),
                }
    return found


def subresources_of(plural: str, listed: list[Json]) -> Json:
    return {
        entry["name"].removeprefix(f"{plural}/"): {key: entry[key] for key in SUBRESOURCE_FACTS if key in entry}
        for entry in listed
        if entry["name"].startswith(f"{plural}/")
    }


def root(group: str) -> str:
    return f"apis/{group}" if "/" in group else f"api/{group}"


def page(version: str, title: str, entries: Json) -> str:
    """JSON with one entry per line, so that a new version reads as a diff."""
    lines = ",\n".join(f"{compact(name)}:{compact(entries[name])}" for name in sorted(entries))
    return f'{{"version":{compact(version)},"{title}":{{\n{lines}\n}}}}\n'


def compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def compare(files: dict[str, str]) -> int:
    stale = [
        name
        for name, text in files.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text(encoding="utf-8") != text
    ]
    for name in stale:
        print(f"schemas: {FOLDER / name} is stale; run tools/schemas.py", file=sys.stderr)
    return 1 if stale else 0


def write(files: dict[str, str]) -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"{FOLDER / name}: {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
