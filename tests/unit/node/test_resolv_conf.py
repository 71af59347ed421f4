"""A pod may bring its own list of name servers, or add to the machine's."""

import pytest

from paceline.node.network.network import has_dns_config, resolv_conf_text
from tests.unit.node.pods import container, pod

MACHINE = "# by hand\nnameserver 10.0.0.1\nsearch lab.example.com\noptions ndots:1 rotate\n"
OWN = {
    "nameservers": ["10.1.2.3"],
    "searches": ["one.example.com"],
    "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
}


@pytest.mark.parametrize(
    ("spec", "has"),
    [({}, False), ({"dnsPolicy": "Default"}, False), ({"dnsPolicy": "None"}, True), ({"dnsConfig": OWN}, True)],
)
def test_a_pod_that_says_nothing_has_the_machines_list(spec, has):
    assert has_dns_config(pod(container(), **spec)) is has


def test_a_pod_may_have_only_its_own():
    subject = pod(container(), dnsPolicy="None", dnsConfig=OWN)

    assert resolv_conf_text(subject, MACHINE) == (
        "search one.example.com\nnameserver 10.1.2.3\noptions ndots:2 edns0\n"
    )


def test_a_pod_may_add_to_the_machines_and_its_options_win():
    assert resolv_conf_text(pod(container(), dnsConfig=OWN), MACHINE) == (
        "search lab.example.com one.example.com\n"
        "nameserver 10.0.0.1\nnameserver 10.1.2.3\n"
        "options ndots:2 rotate edns0\n"
    )
