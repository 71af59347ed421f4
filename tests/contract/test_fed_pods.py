"""A real API server takes every pod and claim that code, data and results need, with nothing unknown in them."""

import json
import subprocess

import pytest

from paceline.kinds import registry
from paceline.model.gang import JobProgress, ReplicaId
from paceline.plan.job.manifests import auxiliary_pod_manifest, claim_manifest, pod_manifest
from paceline.plan.job.plan import AuxiliaryPod, NewPod
from paceline.testing.real.kube import real_kube
from tests.kubes import assets_or_skip
from tests.unit.kinds.manifests import UID, generic

OWNER = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "GenericJob", "name": "demo", "uid": UID}
BUCKET = {"url": "s3://results/runs", "secret": "keys"}
FROM_GIT = {
    "source": {"git": {"url": "https://example.org/x.git", "secret": "reader"}, "cache": "packages"},
    "input": {"bucket": BUCKET},
    "output": {"bucket": BUCKET},
    "hyperparameters": {"values": {"lr": 0.1}},
}
PACKED = {
    "source": {"archive": {"digest": f"sha256:{'0' * 64}", "configMap": "mine"}},
    "input": {"directory": "/data"},
    "output": {"directory": "/results"},
}

pytestmark = [pytest.mark.kube, pytest.mark.timeout(120)]


def manifests():
    for name, spec in {"git": FROM_GIT, "packed": PACKED}.items():
        job = generic(name=name, **spec)
        site, before = registry.expand(job, {})
        _, gang = registry.expand(job, {}, progress=JobProgress(commit="0" * 40))
        yield pod_manifest(site, gang, NewPod(place=ReplicaId("worker", 0), attempt=0), owner=OWNER)
        if before.resolve is not None:
            yield auxiliary_pod_manifest(site, before, AuxiliaryPod(name="resolve", attempt=0), owner=OWNER)
        keeping = gang.members[0].keeping
        if keeping is not None:
            yield auxiliary_pod_manifest(site, gang, AuxiliaryPod(name="flush-worker-0", attempt=0), owner=OWNER)
            yield claim_manifest(site, gang.members[0], keeping.claim, owner=OWNER)


def test_every_manifest_is_taken_as_it_is():
    assets = assets_or_skip()
    with real_kube(assets) as kube:
        for manifest in manifests():
            words = ["create", "--validate=strict", "--dry-run=server", "-f", "-"]
            done = subprocess.run(
                [str(assets / "kubectl"), "--kubeconfig", str(kube.kubeconfig), *words],
                input=json.dumps(manifest),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
