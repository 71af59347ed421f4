"""Stable names have stable addresses, and every pod knows its peers."""

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import Conflict
from paceline.node.host_info import CannotStart, Folders
from paceline.node.network import pod_hosts as module
from paceline.node.network.network import SHARED_NETWORK, PodNetwork
from paceline.node.network.pod_hosts import Hosts, StableName, hostname_of, stable_name, uts_hostname
from paceline.testing.sim.effects import SimFiles

FOLDERS = Folders(root=Path("/agent"))


def pod(name, subdomain="job", *, uid="", namespace="team", hostname=""):
    spec = {"subdomain": subdomain} if subdomain else {}
    if hostname:
        spec["hostname"] = hostname
    return {"metadata": {"namespace": namespace, "name": name, "uid": uid or name}, "spec": spec}


def hosts(files=None, network=SHARED_NETWORK):
    made = Hosts(files=files or SimFiles(), folders=FOLDERS, network=network)
    made.load()
    return made


def lines(hosts, pod):
    """Read a pod's hosts file back: name → address."""
    hosts.flush()
    text = hosts.files.read(hosts.path(pod)).decode()
    return {name: line.split()[0] for line in text.splitlines() if line[:1] != "#" for name in line.split()[1:]}


def test_peers_are_known_by_every_form_of_their_name():
    subject = hosts()
    first, second = pod("w-0"), pod("w-1")
    subject.add(first)
    subject.add(second)

    known = lines(subject, first)
    address = subject.address(second)
    forms = ("w-1", "w-1.job", "w-1.job.team", "w-1.job.team.svc", "w-1.job.team.svc.cluster.local")
    assert {known[form] for form in forms} == {address}
    assert address != subject.address(first)
    assert known["localhost"] in ("127.0.0.1", "::1")


def test_a_peer_that_comes_later_is_in_the_file_that_others_have_mounted():
    subject = hosts()
    first = pod("w-0")
    subject.add(first)
    lines(subject, first)
    file = subject.path(first)

    subject.add(pod("w-1"))

    assert "w-1" in lines(subject, first)
    assert subject.path(first) == file


def test_jobs_do_not_see_each_other():
    subject = hosts()
    for each in (ours := pod("w-0")), pod("x-0", "other"), pod("w-0", namespace="else"), pod("alone", ""):
        subject.add(each)

    assert set(lines(subject, ours)) >= {"w-0"}
    assert not {"x-0", "alone"} & set(lines(subject, ours))


def test_a_pod_without_a_subdomain_has_an_address_and_a_file_of_its_own():
    subject = hosts()
    one, other = pod("one", ""), pod("other", "")
    subject.add(one)
    subject.add(other)

    assert lines(subject, one)["one"] == subject.address(one)
    assert "other" not in lines(subject, one)
    assert subject.address(one) != subject.address(other)


def test_a_later_attempt_has_the_address_of_the_first():
    """H-58"""
    subject = hosts()
    first = pod("job-w-0", hostname="job-w-0", uid="1")
    subject.add(first)
    address = subject.address(first)
    again = pod("job-w-0-r1", hostname="job-w-0", uid="2")
    subject.add(again)
    subject.remove(first)

    assert subject.address(again) == address


def test_addresses_are_the_same_after_a_restart_whatever_the_order():
    files = SimFiles()
    before = hosts(files)
    pods = [pod(f"w-{index}") for index in range(50)]
    for each in pods:
        before.add(each)
    files.crash()
    after = hosts(files)
    for each in reversed(pods):
        after.add(each)

    assert [before.address(each) for each in pods] == [after.address(each) for each in pods]


def collide(monkeypatch):
    """Let all names want the same address."""
    monkeypatch.setattr(module, "preferred_index", lambda _name, _count: 0)


def test_names_that_want_the_same_address_keep_theirs_over_a_power_cut(monkeypatch):
    collide(monkeypatch)
    files = SimFiles()
    before = hosts(files)
    pods = [pod(f"w-{index}") for index in range(5)]
    for each in pods:
        before.add(each)
    addresses = [before.address(each) for each in pods]
    files.crash()
    after = hosts(files)
    for each in reversed(pods):
        after.add(each)

    assert len(set(addresses)) == 5
    assert [after.address(each) for each in pods] == addresses


def test_an_address_that_is_written_down_waits_for_its_name(monkeypatch):
    """After a restart pods are seen in any order; the first to come must not take what another has had."""
    wanted = {"w-0": 0, "w-1": 0, "w-2": 1}
    monkeypatch.setattr(module, "preferred_index", lambda name, _count: wanted[name.hostname])
    files = SimFiles()
    before = hosts(files)
    before.add(pod("w-0"))
    before.add(pod("w-1"))
    after = hosts(files)
    for name in ("w-2", "w-1", "w-0"):
        after.add(pod(name))

    assert after.address(pod("w-1")) == before.address(pod("w-1"))
    assert after.address(pod("w-0")) == before.address(pod("w-0"))


def test_an_address_is_free_again_when_its_last_pod_is_gone(monkeypatch):
    collide(monkeypatch)
    subject = hosts()
    first = pod("w-0")
    subject.add(first)
    address = subject.address(first)
    subject.remove(first)
    subject.remove(first)
    subject.add(pod("w-1"))

    assert subject.address(pod("w-1")) == address


def test_the_file_goes_with_the_last_of_its_pods():
    subject = hosts()
    only = pod("w-0")
    subject.add(only)
    subject.flush()
    subject.remove(only)
    subject.flush()

    assert not subject.files.exists(subject.path(only))


def test_no_name_that_a_person_chose_is_part_of_a_path():
    subject = hosts()
    path = subject.path(pod("../../etc/passwd", "../x"))

    assert path.parent == FOLDERS.hosts
    assert path.name.isalnum()


def test_the_hostname_is_the_pods_name_unless_it_says_another():
    assert hostname_of(pod("demo")) == "demo"
    assert hostname_of(pod("demo", hostname="host")) == "host"
    assert len(hostname_of(pod("x" * 80))) == 63


NAMES = st.builds(StableName, st.text(min_size=1), st.text(), st.text(min_size=1))


OWN = PodNetwork(subnet=IPv4Network("10.20.0.0/28"))


@given(NAMES)
def test_addresses_lie_where_no_other_program_expects_its_own(name):
    subject = hosts()
    one = pod("w", name.subdomain, namespace=name.namespace, hostname=name.hostname)
    subject.add(one)
    address = IPv4Address(subject.address(one))

    assert address in IPv4Network("127.128.0.0/9")
    assert address not in (IPv4Address("127.128.0.0"), IPv4Address("127.255.255.255"))


def test_on_a_bridge_pods_have_all_its_addresses_but_the_machines_own():
    subject = hosts(network=OWN)
    pods = [pod(f"w-{index}") for index in range(13)]
    for each in pods:
        subject.add(each)

    assert {subject.address(each) for each in pods} == {f"10.20.0.{number}" for number in range(2, 15)}


def test_more_names_than_addresses_share_one_and_still_come_and_go():
    subject = hosts(network=OWN)
    pods = [pod(f"w-{index}") for index in range(20)]
    for each in pods:
        subject.add(each)
    assert all(IPv4Address(subject.address(each)) in OWN.subnet for each in pods)
    for each in pods:
        subject.remove(each)
    subject.add(pods[0])

    assert lines(subject, pods[0])["w-0"] == subject.address(pods[0])


def test_a_pod_on_the_machines_own_network_is_found_where_other_pods_can_reach_the_machine():
    subject = hosts(network=OWN)
    peer, outside = pod("w-0"), pod("w-1")
    outside["spec"]["hostNetwork"] = True
    subject.add(peer)
    subject.add(outside)

    assert subject.address(outside) == "10.20.0.1"
    assert lines(subject, peer)["w-1"] == "10.20.0.1"
    assert (subject.has_network(peer), subject.has_network(outside)) == (True, False)


def test_pods_that_only_share_a_hostname_have_an_address_each():
    subject = hosts(network=OWN)
    one, other = pod("a", "", hostname="web"), pod("b", "", hostname="web")
    subject.add(one)
    subject.add(other)

    assert subject.address(one) != subject.address(other)
    assert lines(subject, other)["web"] == subject.address(other)


def test_addresses_of_another_network_are_not_taken_over(monkeypatch):
    collide(monkeypatch)
    files = SimFiles()
    before = hosts(files)
    before.add(pod("w-0"))
    before.add(pod("w-1"))
    after = hosts(files, OWN)
    after.add(pod("w-1"))

    assert after.address(pod("w-1")) == "10.20.0.2"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 2)), max_size=40))
def test_no_two_names_ever_share_an_address(steps):
    """Whoever comes and goes, and however often the agent is started anew."""
    files = SimFiles()
    subject, there = hosts(files), {}
    for comes, index, attempt in steps:
        each = pod(f"w-{index}-r{attempt}", hostname=f"w-{index}", uid=f"{index}-{attempt}")
        if comes:
            subject.add(each)
            there[each["metadata"]["uid"]] = each
        else:
            subject.remove(each)
            there.pop(each["metadata"]["uid"], None)
        names = {stable_name(each): subject.address(each) for each in there.values()}
        assert len(set(names.values())) == len(names)


def test_a_pod_may_be_called_by_its_full_name_if_it_is_no_longer_than_a_machine_may_be():
    full = {"setHostnameAsFQDN": True}
    short, long, alone = (pod(name, subdomain) for name, subdomain in (("w", "job"), ("w" * 50, "job"), ("w", "")))
    for each in (short, long, alone):
        each["spec"] |= full

    assert uts_hostname(short) == "w.job.team.svc.cluster.local"
    assert uts_hostname(alone) == "w"
    with pytest.raises(
        CannotStart, match=r"is too long \(64 characters is the max, 77 characters requested\)"
    ) as caught:
        uts_hostname(long)
    assert caught.value.reason == "FailedCreatePodSandBox"
    assert hostname_of(short) == "w"


def test_a_pod_may_bring_names_of_its_own_which_its_peers_do_not_see():
    subject = hosts()
    first, second = pod("w-0"), pod("w-1")
    first["spec"]["hostAliases"] = [{"ip": "10.1.2.3", "hostnames": ["one.example.com", "two"]}]
    subject.add(first)
    subject.add(second)

    assert lines(subject, first)["two"] == "10.1.2.3"
    assert lines(subject, first)["w-1"] == subject.address(second)
    assert "two" not in lines(subject, second)

    own = subject.path(first)
    subject.remove(first)
    subject.flush()
    assert not subject.files.exists(own)


def test_a_pod_that_went_has_no_address():
    subject = hosts()
    subject.add(pod("w-0"))
    subject.remove(pod("w-0"))

    with pytest.raises(Conflict, match="was deleted meanwhile"):
        subject.address(pod("w-0"))
