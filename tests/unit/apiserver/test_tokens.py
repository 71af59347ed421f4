"""Tokens of service accounts: who gets one, for how long it is good, and what may be done with it."""

import json
from base64 import urlsafe_b64decode
from datetime import timedelta

import pytest

from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.scheme import Scheme
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.auth.service_account_tokens import AccountTokens
from paceline.apiserver.config import Server
from paceline.apiserver.crd.registry import LiveKinds
from tests.unit.apiserver.client import CONFIG_MAPS, HOST, NAMESPACE, PODS, TOKEN, WIDGETS, Client
from tests.unit.apiserver.conftest import WIDGET

ACCOUNTS = f"{NAMESPACE}/serviceaccounts"
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
async def client(store, world, nodes):
    kinds = LiveKinds(Scheme(resources=(*builtin_resources(), WIDGET), components=builtin_components()), store)
    tokens = AccountTokens(key=b"key", store=store, scheme=lambda: kinds.scheme, clock=world.clock)
    gate = Authenticator(tokens={hash_token(TOKEN): "tester"}, hosts=frozenset({HOST}), account=tokens.caller)
    made = {"store": store, "kinds": kinds, "clock": world.clock, "ids": world.ids, "nodes": nodes}
    client = Client(make_app(Server(gate=gate, tokens=tokens, mounts_tokens=True, **made)))
    for name in ("default", "other"):
        await client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    await client.post(ACCOUNTS, {"metadata": {"name": "default"}})
    return client


async def token_of(client, account="default", **spec):
    said = await client.post(f"{ACCOUNTS}/{account}/token", {"spec": spec})
    assert said.code == 201, said.body
    return said.json["status"]["token"]


async def make_pod(client, name="p", **spec):
    said = await client.post(PODS, {"metadata": {"name": name}, "spec": {"containers": [CONTAINER], **spec}})
    assert said.code == 201, said.body
    return said.json


CONTAINER = {"name": "main", "image": "x"}


def bound_to(pod, **more):
    about = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    return about | more


def claims(token):
    text = token.split(".")[1]
    return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))


async def code(client, token, method="GET", path=PODS, body=None):
    said = await client.send(method, path, body, headers={"authorization": f"Bearer {token}"})
    return said.code


async def test_a_token_says_whose_it_is_and_for_how_long(client):
    pod = await make_pod(client)
    said = claims(await token_of(client, boundObjectRef=bound_to(pod), expirationSeconds=600))

    assert said["sub"] == "system:serviceaccount:default:default"
    assert said["exp"] - said["iat"] == 600
    assert said["kubernetes.io"]["pod"] == {"name": "p", "uid": pod["metadata"]["uid"]}


async def test_a_token_runs_out_with_a_minute_of_leeway(client, world):
    """kube-apiserver allows for as much, since clocks differ."""
    token = await token_of(client, expirationSeconds=600)
    assert await code(client, token) == 200
    world.clock.advance(timedelta(seconds=659).total_seconds())
    assert await code(client, token) == 200
    world.clock.advance(timedelta(seconds=2).total_seconds())

    assert await code(client, token) == 401


@pytest.mark.parametrize("hours", [2, 48, 24 * 3653])
async def test_a_token_that_was_signed_while_the_clock_was_ahead_is_good_when_it_is_right(client, world, hours):
    world.clock.jump(hours * 3600)
    token = await token_of(client, expirationSeconds=600)
    world.clock.jump(-hours * 3600)

    assert await code(client, token) == 200


async def test_the_token_of_a_pod_is_good_for_longer_than_it_says(client, world):
    """Programs that read it once run on, as long as their pod is there."""
    token = await token_of(client, boundObjectRef=bound_to(await make_pod(client)), expirationSeconds=3607)
    world.clock.advance(7200)

    assert await code(client, token) == 200


async def test_a_token_ends_with_its_pod_even_if_another_has_its_name(client):
    token = await token_of(client, boundObjectRef=bound_to(await make_pod(client)))
    await client.delete(f"{PODS}/p", gracePeriodSeconds="0")
    assert await code(client, token) == 401
    await make_pod(client)

    assert await code(client, token) == 401


async def test_a_token_ends_with_its_account_even_if_another_has_its_name(client):
    token = await token_of(client)
    await client.delete(f"{ACCOUNTS}/default")
    await client.post(ACCOUNTS, {"metadata": {"name": "default"}})

    assert await code(client, token) == 401


async def test_a_token_for_somebody_else_is_not_for_this_server(client):
    assert await code(client, await token_of(client, audiences=["vault"])) == 401


MAY = {
    "look at pods": ("GET", PODS, 200, 200),
    "look at config maps": ("GET", CONFIG_MAPS, 200, 200),
    "look at kinds that were defined": ("GET", WIDGETS, 200, 200),
    "look at discovery": ("GET", "/apis", 200, 200),
    "make a config map": ("POST", CONFIG_MAPS, 403, 201),
    "make an object of a kind that was defined": ("POST", WIDGETS, 403, 400),
    "delete a pod": ("DELETE", f"{PODS}/nope", 403, 404),
    "enter a pod": ("POST", f"{PODS}/nope/exec", 403, 404),
    "reach through to a pod": ("GET", f"{PODS}/nope/proxy", 403, 404),
    "bind a pod": ("POST", f"{PODS}/nope/binding", 403, 403),
    "write what a pod's status says": ("PATCH", f"{PODS}/nope/status", 403, 403),
    "look at secrets": ("GET", f"{NAMESPACE}/secrets", 403, 403),
    "ask for tokens": ("POST", f"{ACCOUNTS}/default/token", 403, 403),
    "give itself rights": ("PATCH", f"{ACCOUNTS}/default", 403, 403),
    "look at nodes": ("GET", "/api/v1/nodes", 403, 403),
    "look at all pods": ("GET", "/api/v1/pods", 403, 403),
    "look at pods elsewhere": ("GET", "/api/v1/namespaces/other/pods", 403, 403),
    "make config maps elsewhere": ("POST", "/api/v1/namespaces/other/configmaps", 403, 403),
    "look at volumes": ("GET", "/api/v1/persistentvolumes", 403, 403),
    "define kinds": ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", 403, 403),
    "delete its namespace": ("DELETE", NAMESPACE, 403, 403),
}


@pytest.mark.parametrize(("method", "path", "looks", "writes"), MAY.values(), ids=MAY)
async def test_what_an_account_may_do(client, method, path, looks, writes):
    annotations = {"paceline.dev/rights": "write"}
    await client.post(ACCOUNTS, {"metadata": {"name": "writer", "annotations": annotations}})
    body = {"metadata": {"name": "made"}} if method in {"POST", "PATCH"} else None
    codes = []
    for account in ("default", "writer"):
        headers = {"authorization": f"Bearer {await token_of(client, account)}"}
        if method == "PATCH":
            headers["content-type"] = "application/merge-patch+json"
        codes.append((await client.send(method, path, body, headers=headers)).code)

    assert codes == [looks, writes]


async def test_who_may_not_is_told_in_the_words_of_kubernetes(client):
    headers = {"authorization": f"Bearer {await token_of(client)}"}
    said = await client.send("GET", f"{NAMESPACE}/secrets/x", None, headers=headers)

    assert said.json["details"] == {"name": "x", "kind": "secrets"}
    assert said.message == (
        'secrets "x" is forbidden: User "system:serviceaccount:default:default" cannot get resource "secrets" '
        'in API group "" in the namespace "default"'
    )


async def test_an_account_is_told_who_it_is_and_what_it_may(client):
    headers = {"authorization": f"Bearer {await token_of(client)}"}
    who = await client.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=headers)
    asked = {"spec": {"resourceAttributes": {"namespace": "default", "verb": "list", "resource": "secrets"}}}
    may = await client.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", asked, headers=headers)

    assert "system:serviceaccounts:default" in who.json["status"]["userInfo"]["groups"]
    assert may.json["status"] == {"allowed": False}


REFUSED = {
    "too short": ({"expirationSeconds": 599}, 422, "may not specify a duration less than 10 minutes"),
    "too long": ({"expirationSeconds": 2**32 + 1}, 422, "may not specify a duration larger than 2^32 seconds"),
    "no number": ({"expirationSeconds": "x"}, 400, "TokenRequest: "),
    "of a pod that is not there": ({"boundObjectRef": {**bound_to({"metadata": {"name": "no", "uid": ""}})}}, 404, ""),
    "of a thing that ends nothing": (
        {"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}},
        400,
        "a token cannot be bound to a v1 ConfigMap",
    ),
}


@pytest.mark.parametrize(("spec", "status", "message"), REFUSED.values(), ids=REFUSED)
async def test_what_is_refused(client, spec, status, message):
    said = await client.post(f"{ACCOUNTS}/default/token", {"spec": spec})

    assert said.code == status
    assert message in said.message


async def test_a_token_is_bound_only_to_a_pod_of_its_account(client):
    await client.post(ACCOUNTS, {"metadata": {"name": "sa"}})
    pod = await make_pod(client)
    other = await client.post(f"{ACCOUNTS}/sa/token", {"spec": {"boundObjectRef": bound_to(pod)}})
    older = await client.post(f"{ACCOUNTS}/default/token", {"spec": {"boundObjectRef": bound_to(pod, uid="zzz")}})

    assert (other.code, older.code) == (400, 409)
    assert "pod p does not use service account sa" in other.message
    assert "the uid in the reference is zzz" in older.message


async def test_a_pod_is_given_a_token_at_the_place_that_programs_know(client):
    has_own = {"name": "own", "image": "x", "volumeMounts": [{"name": "e", "mountPath": PLACE}]}
    spec = (await make_pod(client, containers=[CONTAINER, has_own], volumes=[{"name": "e", "emptyDir": {}}]))["spec"]

    own, given = spec["volumes"]
    sources = [next(iter(each)) for each in given["projected"]["sources"]]
    assert sources == ["serviceAccountToken", "configMap", "downwardAPI"]
    assert own["name"] == "e"
    mount = {"name": given["name"], "readOnly": True, "mountPath": PLACE}
    assert [each["volumeMounts"] for each in spec["containers"]] == [[mount], has_own["volumeMounts"]]


async def test_nobody_owns_what_a_pod_is_given(client):
    (entry,) = (await make_pod(client))["metadata"]["managedFields"]

    assert "f:volumes" not in entry["fieldsV1"]["f:spec"]


async def test_a_pod_or_its_account_may_do_without(client):
    await client.post(ACCOUNTS, {"metadata": {"name": "sa"}, "automountServiceAccountToken": False})
    by_account = await make_pod(client, "a", serviceAccountName="sa")
    by_pod = await make_pod(client, "b", automountServiceAccountToken=False)
    in_spite = await make_pod(client, "c", serviceAccountName="sa", automountServiceAccountToken=True)

    assert ["volumes" in each["spec"] for each in (by_account, by_pod, in_spite)] == [False, False, True]


async def test_a_pod_names_the_image_secrets_of_its_account(client):
    await client.post(ACCOUNTS, {"metadata": {"name": "sa"}, "imagePullSecrets": [{"name": "reg"}]})

    assert (await make_pod(client, serviceAccountName="sa"))["spec"]["imagePullSecrets"] == [{"name": "reg"}]
