"""Who may lift the confinement of containers, in pods and in whatever pods are made from."""

from dataclasses import replace

import pytest

from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.scheme import Scheme
from paceline.apiserver.admission.chain import unconfined_fields
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.auth.service_account_tokens import AccountTokens
from paceline.apiserver.config import Server
from paceline.apiserver.crd.registry import LiveKinds
from paceline.node.runtime.confinement import DEFAULT_CAPABILITIES
from tests.unit.apiserver.client import HOST, PODS, TOKEN, WIDGETS, Client
from tests.unit.apiserver.conftest import WIDGET
from tests.unit.apiserver.test_tokens import ACCOUNTS, token_of

# A kind that keeps pod templates in a place of its own.
KEEPER = replace(
    WIDGET,
    schema={
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    },
)
UNCONFINED = {"seccompProfile": {"type": "Unconfined"}}
LIFTED = {
    "a container's profile": (
        {"containers": [{"name": "a", "image": "x", "securityContext": UNCONFINED}]},
        "spec.containers[0].securityContext.seccompProfile.type",
    ),
    "the pod's profile": (
        {"securityContext": UNCONFINED, "containers": [{"name": "a", "image": "x"}]},
        "spec.securityContext.seccompProfile.type",
    ),
    "an init container that is privileged": (
        {
            "initContainers": [{"name": "i", "image": "x", "securityContext": {"privileged": True}}],
            "containers": [{"name": "a", "image": "x"}],
        },
        "spec.initContainers[0].securityContext.privileged",
    ),
    "an unmasked /proc": (
        {"containers": [{"name": "a", "image": "x", "securityContext": {"procMount": "Unmasked"}}]},
        "spec.containers[0].securityContext.procMount",
    ),
    "a capability that opens denied system calls": (
        {
            "containers": [
                {"name": "a", "image": "x", "securityContext": {"capabilities": {"add": ["KILL", "SYS_ADMIN"]}}}
            ]
        },
        "spec.containers[0].securityContext.capabilities.add[1]",
    ),
    "every capability": (
        {"containers": [{"name": "a", "image": "x", "securityContext": {"capabilities": {"add": ["ALL"]}}}]},
        "spec.containers[0].securityContext.capabilities.add[0]",
    ),
}


@pytest.fixture
async def client(store, world, nodes):
    kinds = LiveKinds(Scheme(resources=(*builtin_resources(), KEEPER), components=builtin_components()), store)
    tokens = AccountTokens(key=b"key", store=store, scheme=lambda: kinds.scheme, clock=world.clock)
    gate = Authenticator(tokens={hash_token(TOKEN): "tester"}, hosts=frozenset({HOST}), account=tokens.caller)
    made = {"store": store, "kinds": kinds, "clock": world.clock, "ids": world.ids, "nodes": nodes}
    client = Client(make_app(Server(gate=gate, tokens=tokens, **made)))
    await client.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    await client.post(ACCOUNTS, {"metadata": {"name": "default"}})
    return client


async def launcher(client):
    """Make an account that may write, and give the headers of its requests."""
    await client.post(ACCOUNTS, {"metadata": {"name": "launcher", "annotations": {"paceline.dev/rights": "write"}}})
    return {"authorization": f"Bearer {await token_of(client, 'launcher')}"}


@pytest.mark.parametrize(("spec", "path"), LIFTED.values(), ids=LIFTED)
async def test_an_account_may_not_lift_the_confinement_of_a_pod_and_the_admin_may(client, spec, path):
    headers = await launcher(client)
    pod = {"metadata": {"name": "p"}, "spec": spec}

    refused = await client.send("POST", PODS, pod, headers=headers)

    assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
    assert path in refused.json["message"]
    assert [cause["field"] for cause in refused.json["details"]["causes"]] == [path]
    assert (await client.get(f"{PODS}/p")).code == 404
    assert (await client.post(PODS, pod)).code == 201


@pytest.mark.parametrize("name", ["cap_sys_ptrace", "Sys_Module", "DAC_READ_SEARCH", "NET_RAW", "MKNOD", "all", "X"])
def test_however_a_capability_is_spelt_it_lifts_the_confinement(name):
    context = {"capabilities": {"add": [name], "drop": ["ALL"]}}

    assert list(unconfined_fields({"securityContext": context}, "spec")) == [
        ("spec.securityContext.capabilities.add[0]", name)
    ]


def test_accounts_may_add_what_every_container_has_and_drop_anything():
    added = [each.removeprefix("CAP_") for each in DEFAULT_CAPABILITIES]
    context = {"capabilities": {"add": [*added, "IPC_LOCK", "cap_chown"], "drop": ["NET_RAW"]}}

    assert not list(unconfined_fields({"securityContext": context}, "spec"))


async def test_an_account_may_not_hide_it_in_what_pods_are_made_from(client):
    headers = await launcher(client)
    template = {"spec": {"containers": [{"name": "a", "securityContext": UNCONFINED}]}}
    widget = {"apiVersion": "toys.test/v1", "kind": "Widget", "metadata": {"name": "w"}}

    assert next(unconfined_fields({"replicaSpecs": [{"template": template}]}, "spec")) == (
        "spec.replicaSpecs[0].template.spec.containers[0].securityContext.seccompProfile.type",
        "Unconfined",
    )
    made = await client.send("POST", WIDGETS, {**widget, "spec": {"template": template}}, headers=headers)
    assert made.code == 403, made.body
    assert (await client.post(WIDGETS, {**widget, "spec": {"template": template}})).code == 201


async def test_an_account_changes_what_is_around_a_lifted_pod_but_not_the_pod(client):
    """Labels of a pod that the admin made are no way to run something else in it."""
    headers = await launcher(client)
    spec, _ = LIFTED["a container's profile"]
    await client.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
    merge = {**headers, "content-type": "application/merge-patch+json"}
    image = {"spec": {"containers": [{**spec["containers"][0], "image": "y"}]}}

    labelled = await client.send("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, headers=merge)
    changed = await client.send("PATCH", f"{PODS}/p", image, headers=merge)

    assert (labelled.code, changed.code) == (200, 403)


async def test_a_patch_that_names_only_the_last_word_is_refused_too(client):
    may = await launcher(client)
    headers = {**may, "content-type": "application/json-patch+json"}
    default = {"seccompProfile": {"type": "RuntimeDefault"}}
    widget = {"apiVersion": "toys.test/v1", "kind": "Widget", "metadata": {"name": "w"}}
    made = await client.send(
        "POST", WIDGETS, {**widget, "spec": {"template": {"securityContext": default}}}, headers=may
    )
    assert made.code == 201, made.body
    step = {"op": "replace", "path": "/spec/template/securityContext/seccompProfile/type", "value": "Unconfined"}

    refused = await client.send("PATCH", f"{WIDGETS}/w", [step], headers=headers)

    assert refused.code == 403, refused.body


PROFILES = {
    "no type": ({}, "type", "Required value: must be set when seccompProfile is set"),
    "a wrong type": ({"type": "Default"}, "type", 'Unsupported value: "Default": supported values: "Localhost"'),
    "a file that nobody asks for": (
        {"type": "RuntimeDefault", "localhostProfile": "a.json"},
        "localhostProfile",
        "may be set only when the type is Localhost",
    ),
    "no file": (
        {"type": "Localhost"},
        "localhostProfile",
        "Required value: must be set when the type is Localhost",
    ),
    "a file elsewhere": (
        {"type": "Localhost", "localhostProfile": "../a"},
        "localhostProfile",
        "must not contain '..'",
    ),
}


@pytest.mark.parametrize(("profile", "field", "hint"), PROFILES.values(), ids=PROFILES)
async def test_a_profile_that_cannot_be_is_refused_by_its_field(client, profile, field, hint):
    container = {"name": "a", "image": "x", "securityContext": {"seccompProfile": profile}}

    refused = await client.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})

    assert refused.code == 422, refused.body
    assert f"spec.containers[0].securityContext.seccompProfile.{field}" in refused.json["message"]
    assert hint in refused.json["message"]
