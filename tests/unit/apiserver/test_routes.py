"""Every route is classified, and what is not open to anyone asks for a token."""

import pytest

from paceline.apiserver.auth.authentication import ANYONE, PUBLIC, Authenticator
from paceline.apiserver.http_types import Caller
from paceline.apiserver.routes import COLLECTION, DISCOVERY, HEALTH, OBJECT, PUBLIC_ROUTES, ROUTES, VERBS
from paceline.testing.fixed_kinds import full_scheme
from tests.unit.apiserver.client import NAMESPACE, PODS
from tests.unit.apiserver.test_exec import meet

SOMEBODY = Caller(name="somebody")
PATHS = {HEALTH: PUBLIC[0], DISCOVERY: "/version", COLLECTION: PODS, OBJECT: f"{PODS}/p"}


def routes():
    """Every route the dispatcher knows: sort, verb, and a request that asks for it."""
    for sort, methods in VERBS.items():
        path = PATHS.get(sort) or f"{PODS}/p/{sort}"
        for method, verb in methods.items():
            yield pytest.param(sort, verb, method, path, id=f"{method} {sort}")


def test_every_subresource_that_is_served_is_a_sort_of_route():
    served = {name for resource in full_scheme().resources for name in resource.subresources}

    assert served <= set(VERBS)


def test_every_verb_that_is_served_is_one_of_a_route():
    served = {verb for resource in full_scheme().resources for verb in resource.verbs}

    assert served <= {verb for _, verb in ROUTES}


@pytest.mark.parametrize(("sort", "verb", "method", "path"), list(routes()))
async def test_every_route_is_classified_and_closed_to_whom_it_is_not_for(client, sort, verb, method, path):
    is_open = (sort, verb) in PUBLIC_ROUTES

    said = await client.send(method, path, headers={"authorization": None})

    assert said.code == (200 if is_open else 401)


def test_only_health_is_public():
    assert {(HEALTH, "get")} == PUBLIC_ROUTES


def test_the_gate_lets_nobody_through_to_a_route_that_is_not_classified():
    gate = Authenticator(tokens={}, hosts=frozenset())

    assert gate.allows(SOMEBODY, OBJECT, "get", None)
    assert not gate.allows(ANYONE, OBJECT, "get", None)
    assert not gate.allows(SOMEBODY, "backdoor", "get", None)


@pytest.mark.parametrize("part", ["exec", "attach", "portforward", "proxy/x"])
async def test_a_websocket_needs_a_token_too(client, part):
    head, _ = await meet(client, f"{PODS}/p/{part}", headers={"authorization": None})

    assert head["status"] == 401


async def test_a_dispatcher_that_meets_a_forbidden_route_says_so(client, monkeypatch):
    monkeypatch.setattr(Authenticator, "allows", lambda *_: False)

    for path in (PODS, f"{PODS}/p", f"{PODS}/p/exec", f"{NAMESPACE}/services/s/proxy/", "/version", "/openapi/v3"):
        assert (await client.get(path)).code == 403, path
