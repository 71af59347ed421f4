"""TensorBoard and Notebook: checked like jobs, and kept for their controllers."""

import pytest

from paceline.errors import Invalid
from paceline.kinds import registry
from paceline.kinds.interactive.spec import LogSet, read_uri
from tests.unit.kinds.manifests import explorer, notebook, pytorch, said, template, tensorboard

URIS = {
    "a folder of a claim": ("t9k://pvc/mnist/log", LogSet(claim="mnist", folder="log")),
    "a slash at the end": ("t9k://pvc/yolov5/run/train/", LogSet(claim="yolov5", folder="run/train")),
    "the whole claim": ("t9k://pvc/mnist", LogSet(claim="mnist")),
    "the whole claim with a slash": ("t9k://pvc/mnist/", LogSet(claim="mnist")),
    "a dot that means nothing": ("t9k://pvc/mnist/./log", LogSet(claim="mnist", folder="log")),
    "a folder of a bucket": ("t9k://minio/keys/b/log/", LogSet(secret="keys", bucket="b", folder="log")),
    "a whole bucket": ("t9k://minio/keys/b", LogSet(secret="keys", bucket="b")),
    "no claim": ("t9k://pvc/", None),
    "no bucket": ("t9k://minio/keys", None),
    "another store": ("t9k://nfs/a/b", None),
    "another scheme": ("s3://b/log", None),
    "a way out of the claim": ("t9k://pvc/mnist/../other", None),
}


@pytest.mark.parametrize(("uri", "found"), URIS.values(), ids=URIS)
def test_a_log_set_is(uri, found):
    """Vector 17."""
    assert read_uri(uri) == found


FINE = {
    "logs in a claim": tensorboard(),
    "logs in a file set": tensorboard(logDir={}, trainingLogFilesets=["t9k://pvc/mnist/log"]),
    "logs in a bucket": tensorboard(logDir={"s3": {"secretRef": {"name": "keys"}, "uri": ["s3://b/log/"]}}),
    "logs on the web": tensorboard(logDir={"http": {"url": ["https://example.com/log"]}}),
    "all that may be said": tensorboard(
        image="tb:1", resources={"limits": {"cpu": "200m"}}, suspend=True, scheduler={"t9kScheduler": {"queue": "q"}}
    ),
    "a notebook": notebook(),
    "a notebook with keys": notebook(ssh={"enabled": True, "authorized_keys": ["mine"], "serviceType": "ClusterIP"}),
}


@pytest.mark.parametrize("obj", FINE.values(), ids=FINE)
def test_there_may_be(obj):
    assert registry.service_faults(obj) == ()
    assert registry.warnings(obj) == ()
    assert isinstance(registry.read_service(obj)[1], registry.service_of(obj).spec)


FAULTS = {
    "nothing to show": (
        tensorboard(logDir={}),
        "spec.logDir: None is not allowed; set a location of logs",
    ),
    "a folder in the wrong case": (
        tensorboard(logDir={"pvc": [{"name": "mnist", "subpath": ["log"]}]}),
        "spec.logDir.pvc[0].subpath: ['log'] is not allowed; unknown field, did you mean \"subPath\"?",
    ),
    "a folder outside of the claim": (
        tensorboard(logDir={"pvc": [{"name": "mnist", "subPath": ["log", "../other"]}]}),
        "spec.logDir.pvc[0].subPath[1]: '../other' is not allowed; must be a directory inside the claim",
    ),
    "a URI nobody reads": (
        tensorboard(trainingLogFilesets=["mnist/log"]),
        "spec.trainingLogFilesets[0]: 'mnist/log' is not allowed; must be t9k://pvc/CLAIM/FOLDER",
    ),
    "a notebook without a pod": (
        notebook(template={}),
        "spec.template.spec: None is not allowed; the field is required",
    ),
    "a run mode nobody knows": (
        notebook(runMode="sleeping"),
        "spec.runMode: 'sleeping' is not allowed; unknown field",
    ),
    "a kind nobody knows": (
        {**notebook(), "kind": "NoteBook"},
        'kind: \'NoteBook\' is not allowed; supported values: "TensorBoard", "Notebook", "Explorer", did you mean',
    ),
}


@pytest.mark.parametrize(("obj", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_service_is_refused_for(obj, fault):
    (found,) = registry.service_faults(obj)

    assert str(found).startswith(fault)


def test_a_job_is_no_service_and_a_service_is_no_job():
    with pytest.raises(Invalid):
        registry.read_service(pytorch())
    with pytest.raises(Invalid):
        registry.read(notebook())
    with pytest.raises(Invalid):
        registry.today({"apiVersion": "v1", "kind": "Pod"})


def checked(obj, *claims):
    (resource,) = [each for each in registry.resources() if each.kind == obj["kind"]]

    def lookup(_plural, _namespace):
        return claims

    return said(resource.check(obj, lookup) or registry.claim_faults(obj, lookup))


def test_claims_must_be_there():
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "mnist"}}
    mounting = notebook(template=template(name="notebook", volumes=[data]))

    assert checked(tensorboard(), "mnist") == checked(mounting, "mnist") == []
    assert checked(tensorboard(), "mnits") == [
        "spec.logDir.pvc[0].name: 'mnist' is not allowed; namespace default has no such claim, did you mean \"mnits\"?"
    ]
    assert checked(mounting)[0].startswith("spec.template.spec.volumes[0].persistentVolumeClaim.claimName: 'mnist'")
    assert checked(tensorboard(logDir={}))[0].startswith("spec.logDir: ")


def test_everything_about_a_service_may_change():
    assert [kind.mutable for kind in registry.SERVICES] == [None, None, None]


@pytest.mark.parametrize("obj", [tensorboard(), explorer()], ids=["tensorboard", "explorer"])
def test_our_own_container_has_requests_and_limits_so_that_a_quota_accepts_it(obj):
    (container,) = registry.expand_service(obj).template["spec"]["containers"]

    amounts = container["resources"]
    assert {group: sorted(amounts[group]) for group in ("requests", "limits")} == {
        "requests": ["cpu", "memory"],
        "limits": ["cpu", "memory"],
    }
