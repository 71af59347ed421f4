"""The proxy of a node: what may be asked of its agent by this way, and by whom."""

import pytest

from tests.unit.apiserver.client import TOKEN
from tests.unit.apiserver.test_tokens import client as client_with_accounts
from tests.unit.apiserver.test_tokens import token_of

NODE = "/api/v1/nodes/n1"
accounts = client_with_accounts


@pytest.fixture
async def there(client):
    await client.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
    return client


@pytest.mark.parametrize("path", ["healthz", "pods", "stats/summary", "history/default", "history/a%2Fb/p/log"])
async def test_what_an_agent_tells_is_passed_on_without_what_is_ours(there, nodes, path):
    said = await there.get(f"{NODE}/proxy/{path}", job="j")

    assert said.code == 200
    (passed,) = nodes.passed
    assert passed["raw_path"] == f"/{path}".encode()
    assert passed["query_string"] == b"job=j"
    assert TOKEN.encode() not in repr(passed["headers"]).encode()


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "proxy", 404),
        ("GET", "proxy/", 404),
        ("GET", "proxy/containerLogs/default/p/c", 404),
        ("GET", "proxy/exec/default/p/c", 404),
        ("GET", "proxy/proxy/http/default/p/80/", 404),
        ("GET", "proxy/..%2Fexec/x", 404),
        ("POST", "proxy/history/default", 405),
        ("DELETE", "proxy/history/default", 405),
    ],
)
async def test_all_else_is_refused(there, nodes, method, path, code):
    said = await there.send(method, f"{NODE}/{path}")

    assert said.code == code
    assert nodes.passed == []


async def test_a_node_that_is_not_there_has_no_agent(there, nodes):
    said = await there.get("/api/v1/nodes/n2/proxy/healthz")

    assert (said.code, said.message) == (404, 'nodes "n2" not found')
    assert nodes.passed == []


async def test_the_account_of_a_pod_may_not_ask(accounts, nodes):
    await accounts.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
    own = {"authorization": f"Bearer {await token_of(accounts)}"}

    said = await accounts.send("GET", f"{NODE}/proxy/history/default", headers=own)

    assert said.code == 403
    assert nodes.passed == []
