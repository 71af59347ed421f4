"""The variables T9k fills in for a GenericJob, such as `$(rank)` and `$(service.worker[0].host)`.

Every other `$(NAME)` is left to Kubernetes, which expands it from the environment; `$$(…)` is left alone too.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.errors import Fault
from paceline.kinds.fields import Free, whole_number
from paceline.kinds.template import each_container
from paceline.objects.faults import did_you_mean, invalid
from paceline.objects.gang import Place, Site

VARIABLE = re.compile(r"(?<!\$)\$\((type|rank|replicas\[[^()]*|service\.[^()]*)\)")
REPLICAS = re.compile(r"replicas\[([^][]*)\]")
HOST = re.compile(r"service\.([^][]+)\[([^][]*)\]\.host")
PORT = re.compile(r"service\.port\[([^][]*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """What may be filled in: the number of replicas of each type, and the ports of the service, if there is one."""

    replicas: Mapping[str, int]
    ports: Mapping[str, int] | None

    def check(self, template: Mapping[str, Any], path: str) -> Iterator[Fault]:
        """Name every variable that stands for nothing."""
        for where, text in _texts(template, path):
            for found in VARIABLE.finditer(text):
                if wrong := self._problem(found[1]):
                    yield invalid(where, found[0], wrong)

    def fill(self, template: Mapping[str, Any], *, site: Site, place: Place) -> Free:
        """Copy a faultless template with every variable filled in for one place."""

        def filled(text: str) -> str:
            return VARIABLE.sub(lambda found: self._value(found[1], site, place), text)

        def change(container: Mapping[str, Any]) -> Free:
            changed = dict(container)
            for key in ("command", "args"):
                if changed.get(key):
                    changed[key] = [filled(word) for word in changed[key]]
            if changed.get("env"):
                changed["env"] = [
                    {**each, "value": filled(each["value"])} if "value" in each else each for each in changed["env"]
                ]
            return changed

        return each_container(template, change)

    def _problem(self, name: str) -> str:
        if name in ("type", "rank"):
            return ""
        if found := REPLICAS.fullmatch(name):
            return self._type_problem(found[1])
        if self.ports is None:
            return "the job has no service; add spec.service.ports"
        if found := PORT.fullmatch(name):
            near = did_you_mean(found[1], self.ports)
            return "" if found[1] in self.ports else f"the service has no port of this name{near}"
        if found := HOST.fullmatch(name):
            return self._type_problem(found[1]) or self._rank_problem(found[1], found[2])
        return "write $(replicas[TYPE]), $(service.TYPE[RANK].host) or $(service.port[NAME])"

    def _type_problem(self, role: str) -> str:
        if role in self.replicas:
            return ""
        near = did_you_mean(role, self.replicas)
        return f"there is no replica type of this name{near or '; there are ' + ', '.join(self.replicas)}"

    def _rank_problem(self, role: str, rank: str) -> str:
        number = whole_number(rank)
        if number is not None and number < self.replicas[role]:
            return ""
        return f"ranks of {role} go from 0 to {self.replicas[role] - 1}"

    def _value(self, name: str, site: Site, place: Place) -> str:
        if name == "type":
            return place.role
        if name == "rank":
            return str(place.index)
        if found := REPLICAS.fullmatch(name):
            return str(self.replicas[found[1]])
        if found := HOST.fullmatch(name):
            return site.host(Place(found[1], int(found[2])))
        return str((self.ports or {})[name.removeprefix("service.port[").removesuffix("]")])


def _texts(template: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    spec = template["spec"]
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            where = f"{path}.spec.{group}[{index}]"
            for key in ("command", "args"):
                for position, word in enumerate(container.get(key) or ()):
                    yield f"{where}.{key}[{position}]", word
            for position, each in enumerate(container.get("env") or ()):
                if each.get("value"):
                    yield f"{where}.env[{position}].value", each["value"]
