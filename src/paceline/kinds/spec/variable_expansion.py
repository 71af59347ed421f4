"""The variables that T9k expands in a GenericJob, such as `$(rank)` and `$(service.worker[0].host)`.

Every other `$(NAME)` is left to Kubernetes, which expands it from the environment; so is the escaped `$$(…)`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.field_errors import did_you_mean, invalid
from paceline.errors import Fault
from paceline.kinds.spec.fields import Free, whole_number
from paceline.kinds.spec.pod_template import each_container
from paceline.model.gang import JobNaming, ReplicaId

VARIABLE = re.compile(r"(?<!\$)\$\((type|rank|replicas\[[^()]*|service\.[^()]*)\)")
REPLICAS = re.compile(r"replicas\[([^][]*)\]")
HOST = re.compile(r"service\.([^][]+)\[([^][]*)\]\.host")
PORT = re.compile(r"service\.port\[([^][]*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """The values of the variables: the number of replicas of each type, and the ports of the Service, if any."""

    replicas: Mapping[str, int]
    ports: Mapping[str, int] | None

    def check(self, template: Mapping[str, Any], path: str) -> Iterator[Fault]:
        """Yield a fault for each variable that has no value."""
        for text_path, text in _texts(template, path):
            for match in VARIABLE.finditer(text):
                if problem := self._problem(match[1]):
                    yield invalid(text_path, match[0], problem)

    def fill(self, template: Mapping[str, Any], *, site: JobNaming, place: ReplicaId) -> Free:
        """Return a copy of a valid template with every variable expanded for one replica."""

        def filled(text: str) -> str:
            return VARIABLE.sub(lambda match: self._value(match[1], site, place), text)

        def change(container: Mapping[str, Any]) -> Free:
            changed = dict(container)
            for key in ("command", "args"):
                if changed.get(key):
                    changed[key] = [filled(argument) for argument in changed[key]]
            if changed.get("env"):
                changed["env"] = [
                    {**variable, "value": filled(variable["value"])} if "value" in variable else variable
                    for variable in changed["env"]
                ]
            return changed

        return each_container(template, change)

    def _problem(self, name: str) -> str:
        if name in ("type", "rank"):
            return ""
        if match := REPLICAS.fullmatch(name):
            return self._type_problem(match[1])
        if self.ports is None:
            return "the job has no Service; set spec.service.ports"
        if match := PORT.fullmatch(name):
            near = did_you_mean(match[1], self.ports)
            return "" if match[1] in self.ports else f"the Service has no port of this name{near}"
        if match := HOST.fullmatch(name):
            return self._type_problem(match[1]) or self._rank_problem(match[1], match[2])
        return "must be $(replicas[TYPE]), $(service.TYPE[RANK].host) or $(service.port[NAME])"

    def _type_problem(self, role: str) -> str:
        if role in self.replicas:
            return ""
        near = did_you_mean(role, self.replicas)
        return f"the job has no replica type of this name{near or '; its types are ' + ', '.join(self.replicas)}"

    def _rank_problem(self, role: str, rank: str) -> str:
        number = whole_number(rank)
        if number is not None and number < self.replicas[role]:
            return ""
        return f"the ranks of {role} are 0 to {self.replicas[role] - 1}"

    def _value(self, name: str, site: JobNaming, place: ReplicaId) -> str:
        if name == "type":
            return place.role
        if name == "rank":
            return str(place.index)
        if match := REPLICAS.fullmatch(name):
            return str(self.replicas[match[1]])
        if match := HOST.fullmatch(name):
            return site.host(ReplicaId(match[1], int(match[2])))
        return str((self.ports or {})[name.removeprefix("service.port[").removesuffix("]")])


def _texts(template: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    spec = template["spec"]
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            container_path = f"{path}.spec.{group}[{index}]"
            for key in ("command", "args"):
                for position, argument in enumerate(container.get(key) or ()):
                    yield f"{container_path}.{key}[{position}]", argument
            for position, variable in enumerate(container.get("env") or ()):
                if variable.get("value"):
                    yield f"{container_path}.env[{position}].value", variable["value"]
