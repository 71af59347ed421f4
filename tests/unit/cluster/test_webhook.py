"""The validating webhook: what it refuses, what it never blocks, and how API servers learn its certificate."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.kinds.manifests import generic, pytorch, replica

from paceline.cluster.installation.manifests import installation
from paceline.cluster.installation.values import check_values
from paceline.cluster.webhook.certificate import LIFETIME, MAX_CERTIFICATES, make_certificate, with_authority
from paceline.cluster.webhook.review import answer
from paceline.cluster.webhook.server import app, split_address
from paceline.errors import BadRequest

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def asked(operation, obj, old=None, **request):
    body = {"uid": "u1", "operation": operation, "object": obj, "oldObject": old, **request}
    review = answer({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    assert review["response"]["uid"] == "u1"
    return review["response"]


def test_a_fault_is_refused_as_the_embedded_server_refuses_it():
    response = asked("CREATE", generic(successRules=[{"boss": [0]}]))

    assert not response["allowed"]
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in response["status"]["details"]["causes"]] == ["spec.successRules[0]"]


def test_a_valid_object_is_allowed_and_its_old_shapes_are_mentioned():
    assert asked("CREATE", pytorch()) == {"uid": "u1", "allowed": True}
    (warning,) = asked("CREATE", pytorch(runMode={"pause": {"enable": True}}))["warnings"]
    assert "old form" in warning


def test_a_change_of_a_frozen_field_is_refused():
    response = asked("UPDATE", pytorch(replica(replicas=3)), pytorch())

    assert [cause["field"] for cause in response["status"]["details"]["causes"]] == ["spec.replicaSpecs[0].replicas"]


def test_what_is_stored_already_is_never_blocked():
    invalid = generic(successRules=[{"boss": [0]}])
    labelled = {**invalid, "metadata": {**invalid["metadata"], "labels": {"a": "b"}}}
    going = generic(failureRules=[{"boss": [0]}])
    going["metadata"] = {**going["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}

    assert asked("UPDATE", labelled, invalid)["allowed"]
    assert asked("UPDATE", going, invalid)["allowed"]
    assert asked("DELETE", None, invalid)["allowed"]
    assert asked("UPDATE", invalid, generic(), subResource="status")["allowed"]


def test_a_kind_that_is_not_ours_is_none_of_its_business():
    assert asked("CREATE", {"apiVersion": "v1", "kind": "Pod", "metadata": {}})["allowed"]


@pytest.mark.parametrize("body", [None, [], {}, {"kind": "AdmissionReview"}, {"request": {"uid": 1}}])
def test_what_is_no_review_is_a_bad_request(body):
    with pytest.raises(BadRequest):
        answer(body)


async def posted(path, *chunks):
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages.append({"type": "http.request", "body": b"", "more_body": False})
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    await app({"type": "http", "method": "POST", "path": path}, receive, send)
    return sent[0]["status"], sent[1]["body"]


async def test_a_broken_request_is_answered_with_a_sentence():
    assert await posted("/validate", b"{") == (400, b"the body is not JSON\n")
    assert (await posted("/other", b"{}"))[0] == 404
    assert (await posted("/validate", b"[" * 200_000))[0] == 400
    assert (await posted("/validate", *[b"x" * 1024 * 1024] * 9))[0] == 413


def bundle(configuration):
    data = base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])
    return data.count(b"BEGIN CERTIFICATE"), data


def test_every_controller_adds_its_certificate_to_the_bundle():
    configuration = {"webhooks": [{"name": "a", "clientConfig": {"url": "https://x"}}]}
    first, second = (make_certificate(["a.b.svc", "127.0.0.1"], NOW).certificate for _ in range(2))

    configuration = with_authority(configuration, first, NOW)
    assert with_authority(configuration, first, NOW) is None
    configuration = with_authority(configuration, second, NOW)
    count, data = bundle(configuration)
    assert count == 2
    assert first in data
    assert second in data
    assert configuration["webhooks"][0]["clientConfig"]["url"] == "https://x"


def test_expired_and_surplus_certificates_leave_the_bundle():
    configuration = {"webhooks": [{"name": "a", "clientConfig": {}}]}
    for day in range(MAX_CERTIFICATES + 2):
        certificate = make_certificate(["a"], NOW + timedelta(days=day)).certificate
        configuration = with_authority(configuration, certificate, NOW)
    assert bundle(configuration)[0] == MAX_CERTIFICATES

    later = NOW + LIFETIME + timedelta(days=MAX_CERTIFICATES + 2)
    newest = make_certificate(["a"], later).certificate
    assert bundle(with_authority(configuration, newest, later)) == (1, newest)


def test_a_bundle_that_somebody_broke_is_replaced():
    configuration = {"webhooks": [{"name": "a", "clientConfig": {"caBundle": "!!"}}]}
    certificate = make_certificate(["a"], NOW).certificate

    assert bundle(with_authority(configuration, certificate, NOW)) == (1, certificate)


@pytest.mark.parametrize("address", ["9443", "host:", "host:0", "host:70000", ":x"])
def test_an_address_without_a_port_is_refused(address):
    with pytest.raises(BadRequest, match="write HOST:PORT"):
        split_address(address)


def test_an_address_may_leave_the_host_out():
    assert split_address(":9443") == ("0.0.0.0", 9443)
    assert split_address("[::1]:9443") == ("::1", 9443)


def test_the_manifests_ask_the_webhook_about_specs_only():
    values = check_values({"image": "paceline:1", "webhook": {"bindAddress": "0.0.0.0:9443"}})
    objects = {(part["kind"], part["metadata"]["name"]): part for part in installation(values)}
    service, role = objects["Service", "paceline-webhook"], objects["ClusterRole", "paceline-controller-webhook"]
    (webhook,) = objects["ValidatingWebhookConfiguration", "paceline"]["webhooks"]

    assert (
        service["spec"]["selector"].items()
        <= objects["Deployment", "paceline-controller"]["spec"]["selector"]["matchLabels"].items()
    )
    assert webhook["failurePolicy"] == "Ignore"
    assert {operation for rule in webhook["rules"] for operation in rule["operations"]} == {"CREATE", "UPDATE"}
    assert not [name for rule in webhook["rules"] for name in rule["resources"] if "/" in name]
    assert role["rules"] == [
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["validatingwebhookconfigurations"],
            "verbs": ["get", "update"],
            "resourceNames": ["paceline"],
        }
    ]
