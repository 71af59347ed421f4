"""How `paceline kube controller` finds its cluster, and stays known there."""

from pathlib import Path

import pytest
from tests.contract.subjects import our_app

from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.client.rest_config import Access
from paceline.cluster.external_controllers import TOKEN_SECONDS, Choice, check, find_access, pod_token, version_problem
from paceline.errors import HostError
from paceline.testing.sim.effects import SimClock


def test_a_token_that_is_replaced_is_read_again_in_time():
    clock, tokens, reads = SimClock(), ["first"], []

    def read(path: Path) -> bytes:
        reads.append(path)
        return tokens[-1].encode()

    bearer = pod_token(clock, read)
    assert [bearer() for _ in range(3)] == ["first"] * 3
    assert len(reads) == 1, "a file is not read for every request"
    tokens.append("second")
    clock.advance(TOKEN_SECONDS + 1)
    assert bearer() == "second"


def test_a_lease_lies_where_its_controller_works():
    access = Access(server="https://nowhere")
    assert Choice(access=access).lease == ("paceline-system", "paceline-controller")
    assert Choice(access=access, namespaces=("team", "other")).lease == ("team", "paceline-controller")
    assert Choice(access=access, namespaces=("team",), lease_namespace="ops").lease == ("ops", "paceline-controller")


def test_a_kubeconfig_that_is_named_is_the_one_that_is_used(tmp_path):
    path = tmp_path / "config"
    path.write_text(
        "clusters: [{name: a, cluster: {server: 'https://a:1'}}, {name: b, cluster: {server: 'https://b:1'}}]\n"
        "contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}]\n"
        "current-context: a\n"
    )
    assert find_access(str(path), "", {}).server == "https://a:1"
    assert find_access(str(path), "b", {}).server == "https://b:1"
    assert find_access("", "", {"KUBECONFIG": str(path)}).server == "https://a:1"


async def test_an_embedded_cluster_is_not_looked_after_twice():
    gate = Authenticator(tokens={hash_token("secret"): "admin"}, hosts=frozenset({IN_PROCESS}))
    async with our_app(gate) as app, LocalCluster(app, token="secret") as cluster:
        with pytest.raises(HostError, match="its controllers run already"):
            await check(cluster, Choice(access=Access(server="https://here")))


@pytest.mark.parametrize(
    ("version", "is_refused"),
    [
        ("v1.28.15", True),
        ("v1.9.0", True),
        ("v1.29.0", False),
        ("v1.34.4-eks-1", False),
        ("v2.0.0", False),
        ("", False),
    ],
)
def test_a_server_that_is_too_old_is_refused(version, is_refused):
    assert bool(version_problem(version)) is is_refused


async def test_the_sentence_names_the_version_and_what_to_do():
    class Old:
        """A server of which only the version matters."""

        async def stream(self, path, _query):
            assert path == "/version"
            yield b'{"gitVersion": "v1.28.3"}'

    with pytest.raises(HostError, match=r"https://old is Kubernetes v1\.28\.3: Paceline needs 1\.29 or newer"):
        await check(Old(), Choice(access=Access(server="https://old")))
