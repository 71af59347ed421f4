"""Explorer: T9k's kind for the files of a claim."""

from paceline.kinds import registry
from paceline.model.gang import PodTools
from paceline.podtools.files.server import TOKEN_HEADER
from paceline.presentation import explorer

SPEC = {"storageType": "pvc", "storageName": "data"}


def manifest(**spec):
    return {
        "apiVersion": "tensorstack.dev/v1beta1",
        "kind": "Explorer",
        "metadata": {"name": "data", "namespace": "default", "uid": "1"},
        "spec": {**SPEC, **spec},
    }


def test_t9ks_fields_and_our_idle_time_are_allowed():
    fields = manifest(suspend=True, idleSeconds=5, scheduler={"t9kScheduler": {"queue": "q"}})
    assert registry.service_faults(fields) == ()
    assert registry.service_faults(manifest()) == ()


def test_only_claims_can_be_served_and_their_names_are_checked():
    assert [fault.path for fault in registry.service_faults(manifest(storageType="nfs"))] == ["spec.storageType"]
    assert [fault.path for fault in registry.service_faults(manifest(storageName="../x"))] == ["spec.storageName"]


def test_the_pod_has_the_claim_and_its_token_and_nothing_of_the_cluster():
    window = registry.expand_service(manifest(idleSeconds=7))
    pod = window.template["spec"]
    (container,) = pod["containers"]
    assert container["command"][3:] == [
        *("files", "--root=/volume", "--host=$(POD_IP)", "--port=8080", "--idle-seconds=7", "--secret=/paceline-token")
    ]
    assert [volume["name"] for volume in pod["volumes"]] == ["volume", "token"]
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert (window.service, window.has_token, window.ends_by_itself) == ("ex-data", True, True)


def test_the_server_is_pulled_as_the_installation_says():
    tools = PodTools(image="registry.example/paceline:1", pull_policy="Always", pull_secrets=("mirror",))
    pod = registry.expand_service(manifest(), tools).template["spec"]

    assert pod["imagePullSecrets"] == [{"name": "mirror"}]
    assert [(one["image"], one["imagePullPolicy"]) for one in pod["containers"]] == [(tools.image, "Always")]


def test_every_claim_has_an_explorer_whose_name_is_short_enough():
    names = ["data", "a" * 200, "a" * 199 + "b", "with.dots", "with-dots"]
    explorers = [explorer.explorer_name(name) for name in names]
    assert len(set(explorers)) == len(names)
    for claim in names:
        assert registry.service_faults(explorer.explorer_manifest("default", claim)) == ()


def test_client_and_server_agree_on_the_header_of_the_token():
    assert explorer.TOKEN_HEADER == TOKEN_HEADER


def test_the_curves_of_a_job_are_where_its_tensorboard_looks():
    container = {"name": "pytorch", "image": "python", "command": ["true"]}
    replicas = [{"type": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}]
    job = {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {"name": "a", "namespace": "default", "uid": "1"},
        "spec": {"replicaSpecs": replicas},
    }
    assert explorer.curve_folders(job) == ()
    job["spec"]["tensorboardSpec"] = {"trainingLogFilesets": ["t9k://pvc/data/logs", "t9k://minio/keys/bucket/logs"]}
    assert explorer.curve_folders(job) == (explorer.CurveFolder(claim="data", folder="logs"),)
    assert explorer.curve_folders({"kind": "PyTorchTrainingJob", "spec": "no job"}) == ()
