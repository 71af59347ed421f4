"""The values of an installation: those of `charts/paceline`, and of `paceline kube install --set`."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from paceline.apimachinery.field_errors import invalid, required
from paceline.apimachinery.name_validation import label_problem
from paceline.errors import Fault, Invalid
from paceline.kinds.apps.templates.types import Value
from paceline.kinds.apps.templates.values import read_values, value_faults
from paceline.kinds.spec.fields import Free, about

PullPolicy = Literal["", "Always", "IfNotPresent", "Never"]
Objects = tuple[Free, ...]
_CONTROLLER: Free = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
_CONSOLE: Free = {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "512Mi"}}


class PodToolsValues(Value, frozen=True, kw_only=True):
    """The image of Paceline's own containers in the pods of jobs."""

    image: Annotated[str, about("Image of the containers that fetch code and copy data. If empty, that of image.")] = ""
    pull_policy: Annotated[PullPolicy, about("Pull policy of that image. If empty, Kubernetes chooses one.")] = ""
    pull_secrets: Annotated[
        tuple[str, ...], about("Names of pull secrets for that image. They must exist in the namespaces of the jobs.")
    ] = ()


class ControllerValues(Value, frozen=True, kw_only=True):
    """The Deployment of the controllers."""

    replicas: Annotated[
        int, Meta(ge=1, le=10), about("Number of controllers. One leads, the others wait for its lease.")
    ] = 2
    resources: Annotated[Free, about("Resources of the container.")] = msgspec.field(
        default_factory=lambda: dict(_CONTROLLER)
    )
    priority_class_name: Annotated[str, about("Priority class of the pods, for example system-cluster-critical.")] = ""
    node_selector: Annotated[Free, about("Node selector of the pods.")] = msgspec.field(default_factory=dict)
    tolerations: Annotated[Objects, about("Tolerations of the pods.")] = ()
    pod_disruption_budget: Annotated[bool, about("Whether one controller must stay when nodes are drained.")] = True


class MetricsValues(Value, frozen=True, kw_only=True):
    """The metrics of the controllers, at port 8080."""

    service_monitor: Annotated[
        bool, about("Whether to create a ServiceMonitor. Its CRD, of the Prometheus operator, must exist.")
    ] = False
    labels: Annotated[dict[str, str], about("Labels of the ServiceMonitor, for the selector of Prometheus.")] = (
        msgspec.field(default_factory=dict)
    )


class WebhookValues(Value, frozen=True, kw_only=True):
    """The validating webhook of the controllers, for rules that CRDs cannot express."""

    bind_address: Annotated[
        str,
        about("Address at which the controllers serve it: 0.0.0.0:9443. If empty, there is no webhook."),
    ] = ""


class ConsoleValues(Value, frozen=True, kw_only=True):
    """The web console, in which people sign in with their own tokens."""

    enabled: Annotated[bool, about("Whether to run the web console.")] = True
    replicas: Annotated[int, Meta(ge=1, le=10), about("Number of replicas.")] = 1
    service_type: Annotated[Literal["ClusterIP", "NodePort", "LoadBalancer"], about("Type of its Service.")] = (
        "ClusterIP"
    )
    resources: Annotated[Free, about("Resources of the container.")] = msgspec.field(
        default_factory=lambda: dict(_CONSOLE)
    )


class CrdValues(Value, frozen=True, kw_only=True):
    """The CustomResourceDefinitions."""

    install: Annotated[bool, about("Whether to create and update them. Uninstalling keeps them.")] = True
    adopt: Annotated[
        bool, about("Whether to replace CRDs of these names that someone else created, or that are newer.")
    ] = False


class InstallValues(Value, frozen=True, kw_only=True):
    """Values of an installation of Paceline."""

    image: Annotated[
        str, about("Image of Paceline as HOST/NAME:TAG, from a registry that the nodes reach. It must be set.")
    ] = ""
    image_pull_policy: Annotated[PullPolicy, about("Pull policy of the image. If empty, Kubernetes chooses one.")] = ""
    image_pull_secrets: Annotated[
        Objects, about("Pull secrets of the image, as [{name: NAME}], in the namespace of the installation.")
    ] = ()
    namespaces: Annotated[
        tuple[str, ...], about("Namespaces whose jobs are managed, with permissions in these only. If empty, all.")
    ] = ()
    podtools: Annotated[PodToolsValues, about("Image of Paceline's containers in the pods of jobs.")] = msgspec.field(
        default_factory=PodToolsValues
    )
    controller: Annotated[ControllerValues, about("Deployment of the controllers.")] = msgspec.field(
        default_factory=ControllerValues
    )
    metrics: Annotated[MetricsValues, about("Metrics of the controllers.")] = msgspec.field(
        default_factory=MetricsValues
    )
    webhook: Annotated[WebhookValues, about("Validating webhook of the controllers.")] = msgspec.field(
        default_factory=WebhookValues
    )
    network_policy: Annotated[bool, about("Whether to create NetworkPolicies that close all other ports.")] = True
    console: Annotated[ConsoleValues, about("Web console.")] = msgspec.field(default_factory=ConsoleValues)
    crds: Annotated[CrdValues, about("CustomResourceDefinitions.")] = msgspec.field(default_factory=CrdValues)


def default_values() -> dict[str, Any]:
    """Return the default values as a tree."""
    return complete_values(InstallValues())


def complete_values(values: InstallValues) -> dict[str, Any]:
    """Return all values as a tree."""
    tree: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values))
    return tree


def check_values(tree: Mapping[str, Any]) -> InstallValues:
    """Return the decoded values; raise Invalid with everything that is wrong with them."""
    if faults := (value_faults(dict(tree), InstallValues, "values") or tuple(_broken_rules(tree))):
        raise Invalid(faults)
    return read_values(tree, InstallValues)


def _broken_rules(tree: Mapping[str, Any]) -> Iterator[Fault]:
    if not str(tree.get("image") or "").strip():
        yield required("values.image", "set the image of Paceline, such as registry.example/paceline:0.1.0")
    for index, name in enumerate(tree.get("namespaces") or ()):
        if problem := label_problem(str(name)):
            yield invalid(f"values.namespaces[{index}]", name, problem)
