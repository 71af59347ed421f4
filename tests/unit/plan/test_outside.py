"""Where a service is reached from outside, as people type it."""

import pytest

from paceline.plan.interactive.manifests import address_of

PORT = {"port": 80, "nodePort": 30_001}


def service(kind, *ways, port=PORT):
    return {"spec": {"type": kind, "ports": [port]}, "status": {"loadBalancer": {"ingress": list(ways)}}}


ADDRESSES = {
    "an address": (service("LoadBalancer", {"ip": "192.0.2.9"}), "", "http://192.0.2.9/"),
    "a name": (service("LoadBalancer", {"hostname": "lb.example.com"}), "", "http://lb.example.com/"),
    "a long address": (service("LoadBalancer", {"ip": "2001:db8::9"}), "", "http://[2001:db8::9]/"),
    "another port": (service("LoadBalancer", {"ip": "192.0.2.9"}, port={"port": 81}), "", "http://192.0.2.9:81/"),
    "nothing yet": (service("LoadBalancer"), "", ""),
    "a high port meanwhile": (service("LoadBalancer"), "192.0.2.1", "http://192.0.2.1:30001/"),
    "a high port": (service("NodePort"), "192.0.2.1", "http://192.0.2.1:30001/"),
    "a high port of no node": (service("NodePort"), "", ""),
    "no high port": (service("LoadBalancer", port={"port": 80}), "192.0.2.1", ""),
    "inside only": (service("ClusterIP", {"ip": "192.0.2.9"}), "192.0.2.1", ""),
}


@pytest.mark.parametrize(("found", "node", "address"), ADDRESSES.values(), ids=ADDRESSES)
def test_a_service_is_reached_at(found, node, address):
    assert address_of(found, node) == address
