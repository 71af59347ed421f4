"""Writes charts/paceline, which installs Paceline: the templates of `paceline kube install` in Helm's language.

In     the templates and values of paceline.cluster.installation.
Out    the files of the chart, by their paths.
Never  holds a manifest: a test compares what Helm renders with what the command prints.
"""

import json
from typing import Any

import yaml

from paceline import __version__
from paceline.cluster.external_controllers import OLDEST
from paceline.cluster.installation.crd_marks import OWNER, US, VERSION
from paceline.cluster.installation.manifests import definitions, documents
from paceline.cluster.installation.template import ITEM, ManifestTemplate, Ref, Text
from paceline.cluster.installation.values import InstallValues, default_values

CHART = "charts/paceline"
DESCRIPTION = "Runs distributed training jobs: controllers, CustomResourceDefinitions and the web console."
KEEP = {"helm.sh/resource-policy": "keep"}
IMAGE = "values.image: set the image of Paceline, such as registry.example/paceline:0.1.0"
README = """\
Runs distributed training jobs (PyTorch, TensorFlow, MPI, DeepSpeed, XGBoost and others) on Kubernetes {oldest} or
newer. How to install, permissions, upgrades: [Move to Kubernetes](../../docs/guides/kubernetes.md).
"""
NOTES = """\
Paceline {{ .Chart.AppVersion }} is installed in namespace {{ .Release.Namespace }}.

  kubectl rollout status deployment/paceline-controller -n {{ .Release.Namespace }}
  kubectl get pods -n {{ .Release.Namespace }}
{{- $namespace := lookup "v1" "Namespace" "" .Release.Namespace }}
{{- if not (dig "metadata" "labels" "pod-security.kubernetes.io/enforce" "" $namespace) }}

All pods of Paceline fit Pod Security's strictest level. To have the namespace admit no others:

  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted
{{- end }}

`helm uninstall` keeps the CustomResourceDefinitions, and with them all jobs.
"""
FOREIGN = (
    "the CRD %s exists and is not marked as Paceline's; another product may use it; nothing was changed; "
    "--set crds.adopt=true --take-ownership replaces it"
)
NEWER = (
    "the CRD %s is of Paceline %s, which is newer than this chart (%s); nothing was changed; "
    "--set crds.adopt=true replaces it"
)
# Before anything is applied: whose CRDs, and of which version, the cluster has.
CHECK = """\
{{- if not .Values.image }}
{{- fail %(image)s }}
{{- end }}
{{- if and .Values.crds.install (not .Values.crds.adopt) }}
{{- range $name := %(names)s }}
{{- $stored := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- if $stored }}
{{- $marks := dig "metadata" "annotations" (dict) $stored }}
{{- if ne (get $marks "%(owner)s") "%(us)s" }}
{{- fail (printf %(foreign)s $name) }}
{{- end }}
{{- if semverCompare (printf ">%%s" $.Chart.Version) (get $marks "%(version)s") }}
{{- fail (printf %(newer)s $name (get $marks "%(version)s") $.Chart.Version) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
"""


def files(written: str) -> dict[str, str]:
    """Return the files of the chart, by their paths; `written` is the first line of those that allow comments."""
    texts = {
        "Chart.yaml": written + _chart(),
        "templates/check.yaml": _check(),
        "templates/crds.yaml": _crds_template(),
        "templates/NOTES.txt": NOTES,
    }
    for name in dict.fromkeys(document.file for document in documents()):
        parts = [_document(document) for document in documents() if document.file == name]
        texts[f"templates/{name}.yaml"] = "".join(parts)
    for definition in definitions():
        metadata = definition["metadata"]
        annotated = {**definition, "metadata": {**metadata, "annotations": {**metadata["annotations"], **KEEP}}}
        texts[f"files/{metadata['name']}.json"] = json.dumps(annotated, separators=(",", ":")) + "\n"
    return {f"{CHART}/{name}": text for name, text in texts.items()}


def values() -> tuple[type[InstallValues], dict[str, Any]]:
    """Return the type of the values, and the defaults."""
    return InstallValues, default_values()


def readme() -> str:
    """Return the opening of the chart's page."""
    return README.format(oldest=".".join(map(str, OLDEST)))


def _chart() -> str:
    oldest = ".".join(map(str, OLDEST))
    facts = {
        "apiVersion": "v2",
        "type": "application",
        "name": "paceline",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": f">={oldest}.0-0",
        "description": DESCRIPTION,
    }
    return yaml.safe_dump(facts, sort_keys=False, width=200)


def _check() -> str:
    names = " ".join(json.dumps(definition["metadata"]["name"]) for definition in definitions())
    sentences = {"image": IMAGE, "foreign": FOREIGN, "newer": NEWER}
    values = {"names": f"(list {names})", "owner": OWNER, "us": US, "version": VERSION}
    return CHECK % {**values, **{name: json.dumps(sentence) for name, sentence in sentences.items()}}


def _crds_template() -> str:
    """Return the template of the CRDs, which are files: no character of them means anything to Helm."""
    return """\
{{- if .Values.crds.install }}
{{- range $path, $text := .Files.Glob "files/*.json" }}
---
{{ $.Files.Get $path }}
{{- end }}
{{- end }}
"""


def _document(document: ManifestTemplate) -> str:
    conditions = [_path(path) for path in document.when] + [f"(not {_path(path)})" for path in document.unless]
    opening = []
    if conditions:
        both = "and " if len(conditions) > 1 else ""
        opening.append(f"{{{{- if {both}{' '.join(conditions)} }}}}\n")
    if document.range_over:
        opening.append(f"{{{{- range {_path(document.range_over)} }}}}\n")
    return "".join((*opening, "---\n", _text(document.manifest), *("{{- end }}\n" for _ in opening)))


def _text(manifest: dict[str, Any]) -> str:
    """Return a manifest as YAML, with Helm's actions in place of references."""
    actions: list[str] = []
    text = yaml.safe_dump(_marked(manifest, actions), sort_keys=False, width=200)
    for index, action in enumerate(actions):
        text = text.replace(f"ACTION{index}X", action)
    return text


def _marked(node: Any, actions: list[str]) -> Any:
    """Return a manifest with a word for each reference, and add its action to the list."""
    if isinstance(node, Ref | Text):
        actions.append(f"{{{{ {_action(node)} | toJson }}}}")
        return f"ACTION{len(actions) - 1}X"
    if isinstance(node, dict):
        return {key: _marked(inner, actions) for key, inner in node.items()}
    return [_marked(inner, actions) for inner in node] if isinstance(node, list | tuple) else node


def _action(node: Ref | Text) -> str:
    if isinstance(node, Text):
        return f"printf {json.dumps(f'{node.start}%s')} ({_action(node.ref)})"
    action = _path(node.path)
    if node.fallback:
        action = f"default {_path(node.fallback)} {action}"
    return f'join "," {action}' if node.is_joined else action


def _path(path: str) -> str:
    return "." if path == ITEM else f"$.{path}"
