"""Writes src/paceline/apimachinery/builtin/structs.json: how Kubernetes reads and writes its own kinds.

Facts from the struct tags of the Go modules that tools/kube pins: for each struct its fields, their names in JSON,
their types, their numbers in protobuf, and whether an empty one is left out. No text and no code is taken.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from paceline.testing.real.kube import KUBERNETES_VERSION

FILE = Path(__file__).parent.parent / "src/paceline/apimachinery/builtin/structs.json"
MODULE_VERSION = KUBERNETES_VERSION.replace("v1.", "v0.", 1)

# Where the types of each package are declared, by the name they have here.
PACKAGES = {
    "apiextensions.v1": "apiextensions-apiserver/pkg/apis/apiextensions/v1",
    "authentication.v1": "api/authentication/v1",
    "authorization.v1": "api/authorization/v1",
    "coordination.v1": "api/coordination/v1",
    "core.v1": "api/core/v1",
    "discovery.v1": "api/discovery/v1",
    "events.v1": "api/events/v1",
    "meta.v1": "apimachinery/pkg/apis/meta/v1",
    "runtime": "apimachinery/pkg/runtime",
    "scheduling.v1": "api/scheduling/v1",
    "storage.v1": "api/storage/v1",
    "types": "apimachinery/pkg/types",
}
ROOTS = (
    "apiextensions.v1.CustomResourceDefinition",
    "authentication.v1.SelfSubjectReview",
    "authentication.v1.TokenRequest",
    "authorization.v1.SelfSubjectAccessReview",
    "authorization.v1.SelfSubjectRulesReview",
    "coordination.v1.Lease",
    *(
        f"core.v1.{kind}"
        for kind in (
            "Binding",
            "ConfigMap",
            "Endpoints",
            "Event",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "Secret",
            "Service",
            "ServiceAccount",
        )
    ),
    "discovery.v1.EndpointSlice",
    "events.v1.Event",
    "meta.v1.DeleteOptions",
    "scheduling.v1.PriorityClass",
    "storage.v1.StorageClass",
)
# Types that write themselves, each in its own way.
SPECIAL = frozenset(
    {
        "apiextensions.v1.JSON",
        "apiextensions.v1.JSONSchemaPropsOrArray",
        "apiextensions.v1.JSONSchemaPropsOrBool",
        "apiextensions.v1.JSONSchemaPropsOrStringArray",
        "intstr.IntOrString",
        "meta.v1.Duration",
        "meta.v1.FieldsV1",
        "meta.v1.MicroTime",
        "meta.v1.Time",
        "resource.Quantity",
        "runtime.RawExtension",
    }
)
PLAIN = frozenset({"bool", "byte", "float64", "int", "int32", "int64", "string", "uint32", "uint64"})

STRUCT = re.compile(r"^type (\w+) struct ?\{(?:\n(.*?)^)?\}", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^(?:type |\t)(\w+) ((?:\[\]|map\[\w+\])?[\w.]+)$", re.MULTILINE)
FIELD = re.compile(r'^\t(?:(\w+)\s+)?([\w.*\[\]]+)\s+`json:"([^"]*)"(?:.*\sprotobuf:"([^"]*)")?')
IMPORT = re.compile(r'^\t(?:(\w+) )?"k8s\.io/(\S+)"$', re.MULTILINE)

Json = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the file, write nothing")
    check = parser.parse_args().check
    text = page(Declared(module_folder()).reached())
    if not check:
        FILE.write_text(text, encoding="utf-8")
        print(f"{FILE}: {len(text)} bytes")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
        print(f"structs: {FILE} is stale; run tools/structs.py", file=sys.stderr)
        return 1
    return 0


def module_folder() -> Path:
    """Where the Go modules lie that a build of tools/kube has left."""
    go = shutil.which("go") or sys.exit("structs: there is no go")
    asked = subprocess.run((go, "env", "GOMODCACHE"), capture_output=True, text=True, check=True)
    folder = Path(asked.stdout.strip()) / "k8s.io"
    if not (folder / f"api@{MODULE_VERSION}").exists():
        sys.exit("structs: the Go modules are not there; run tools/kube/build first")
    return folder


class Declared:
    """The declarations of all packages."""

    def __init__(self, folder: Path) -> None:
        self.structs: dict[str, list[Json]] = {}
        self.names: dict[str, str] = {}
        for package, path in PACKAGES.items():
            module, _, rest = path.partition("/")
            for source in sorted((folder / f"{module}@{MODULE_VERSION}" / rest).glob("*.go")):
                if not source.stem.startswith(("zz_", "generated")) and not source.stem.endswith("_test"):
                    self._read(source.read_text(encoding="utf-8"), package)

    def _read(self, text: str, package: str) -> None:
        known = {path.partition("/")[2] if "/" in path else path: name for name, path in PACKAGES.items()}
        imported = {}
        for alias, path in IMPORT.findall(text):
            name = known.get(path.partition("/")[2], path.rpartition("/")[2])
            imported[alias or path.rpartition("/")[2]] = name
        for name, inside in STRUCT.findall(text):
            fields = (FIELD.match(line) for line in inside.splitlines())
            self.structs[f"{package}.{name}"] = [
                described(match, package, imported) for match in fields if match and match[3] != "-"
            ]
        for name, meaning in NAMED.findall(text):
            self.names.setdefault(f"{package}.{name}", qualified(meaning, package, imported))

    def reached(self) -> tuple[Json, Json]:
        """The structs and names that the roots need, directly or not."""
        structs: Json = {}
        names: Json = {}
        waiting = list(ROOTS)
        while waiting:
            name = waiting.pop()
            if name in structs or name in names or name in SPECIAL or name in PLAIN:
                continue
            if name in self.structs:
                structs[name] = [compact_field(field) for field in self.structs[name]]
                waiting.extend(part for field in self.structs[name] for part in parts(field["type"]))
            elif name in self.names:
                names[name] = self.names[name]
                waiting.extend(parts(self.names[name]))
            else:
                sys.exit(f"structs: {name} is declared nowhere")
        return structs, names


def described(match: re.Match[str], package: str, imported: dict[str, str]) -> Json:
    name, *flags = match[3].split(",")
    tag = (match[4] or "").split(",")
    return {
        "name": "" if "inline" in flags else name,
        "type": qualified(match[2], package, imported),
        "number": int(tag[1]) if len(tag) > 1 else 0,
        # 0: an empty one is written; 1: left out; 2: left out also when it is a struct.
        "omit": 2 if "omitzero" in flags else 1 if "omitempty" in flags else 0,
    }


def qualified(text: str, package: str, imported: dict[str, str]) -> str:
    """A type with the package of every name in it."""

    def full(match: re.Match[str]) -> str:
        name = match[0]
        if name in PLAIN or name == "map":
            return name
        alias, dot, own = name.partition(".")
        return f"{imported.get(alias, alias)}.{own}" if dot else f"{package}.{name}"

    return re.sub(r"\w+(?:\.\w+)?", full, text)


def parts(text: str) -> list[str]:
    return [name for name in re.findall(r"\w+(?:\.\w+)*", text) if name not in PLAIN and name != "map"]


def compact_field(field: Json) -> list[Any]:
    return [field["name"], field["type"], field["number"], field["omit"]]


def page(found: tuple[Json, Json]) -> str:
    """JSON with one entry per line, so that a new version reads as a diff."""
    structs, names = found
    lines = ",\n".join(f"{compact(name)}:{compact(structs[name])}" for name in sorted(structs))
    named = ",\n".join(f"{compact(name)}:{compact(names[name])}" for name in sorted(names))
    return f'{{"version":{compact(KUBERNETES_VERSION)},"structs":{{\n{lines}\n}},"names":{{\n{named}\n}}}}\n'


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
