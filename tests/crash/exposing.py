"""The life of services that are reached from outside.

One has a port of the external address, another waits for the same one, gets it, and is reached from inside again; and
a TensorBoard of which its author changes who reaches it.
"""

from typing import Any

from paceline.apimachinery.meta import Object
from paceline.client.interface import SERVICES
from paceline.testing.sim.cluster import EXTERNAL
from paceline.testing.sim.processes import Course
from paceline.testing.sim.scenario import Life, Stage
from tests.crash.looking import BOARDS, service
from tests.crash.manifests import named


def balanced(name: str, port: int) -> Object:
    spec = {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": port}]}
    return named("Service", name, spec=spec)


def reached_at(stage: Stage, name: str) -> list[str]:
    status = (stage.find("services", name) or {}).get("status") or {}
    return [each["ip"] for each in (status.get("loadBalancer") or {}).get("ingress") or ()]


def was_told(stage: Stage, name: str) -> bool:
    events = [obj for key, obj in stage.oracle.objects.items() if key.startswith("/core/events/")]
    return any((each["involvedObject"].get("name"), each["reason"]) == (name, "PortNotOpen") for each in events)


async def expose(stage: Stage) -> None:
    await stage.create(SERVICES, balanced("first", 8080))
    await stage.until("first is reached", lambda now: reached_at(now, "first") == [EXTERNAL])
    await stage.create(SERVICES, balanced("second", 8080))
    await stage.until("second says why it is not", lambda now: was_told(now, "second"))
    await stage.delete(SERVICES, "first")
    await stage.until("second has the port", lambda now: reached_at(now, "second") == [EXTERNAL])
    await stage.patch(SERVICES, "second", {"spec": {"type": "ClusterIP"}})
    await stage.until("second is inside", lambda now: reached_at(now, "second") == [])
    logs: dict[str, Any] = {"s3": {"secretRef": {"name": "keys"}, "uri": ["s3://b/log"]}}
    board = {"image": "nobody/knows:1", "logDir": logs, "serviceType": "NodePort"}
    await stage.create(BOARDS, service("TensorBoard", "curves", board))
    await stage.until("it has a high port", lambda now: high_port(now, "tb-curves"))
    await stage.patch(BOARDS, "curves", {"spec": {"serviceType": "LoadBalancer"}})
    await stage.until("it is reached", lambda now: reached_at(now, "tb-curves") == [EXTERNAL])
    await stage.until("it says where", lambda now: f"http://{EXTERNAL}/" in str(now.find("tensorboards", "curves")))
    # Their addresses are drawn by lot.
    await stage.delete(SERVICES, "second")
    await stage.delete(BOARDS, "curves")
    for name in ("second", "tb-curves"):
        await stage.until(f"{name} is gone", lambda now, name=name: now.find("services", name) is None)
    await stage.until("nothing listens", lambda now: not now.cluster.ports.open_ports)


def high_port(stage: Stage, name: str) -> int:
    spec = (stage.find("services", name) or {"spec": {"ports": [{}]}})["spec"]
    return int(spec["ports"][0].get("nodePort") or 0)


def course(_container: str, _pod: str, _tried: int) -> Course:
    return Course(seconds=3)


EXPOSE = Life(name="expose", act=expose, course=course)
