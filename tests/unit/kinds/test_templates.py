"""Values become a job: put over each other as Helm does, checked with a word for each slip, expanded to the digit."""

import json
from pathlib import Path

import pytest

from paceline.errors import BadRequest, Invalid
from paceline.kinds import registry
from paceline.kinds.apps import expand
from paceline.kinds.apps.templates.registry import TEMPLATES, find, rows_of
from paceline.kinds.apps.templates.values import merged, with_setting
from paceline.model.gang import ReplicaId

CPU = {"worker": {"gpuCount": 0}}
FIRST = ReplicaId("worker", 0)


def app(values, template="tensorflow-training", name="mnist"):
    return {
        "apiVersion": "paceline.dev/v1beta1",
        "kind": "TrainingApp",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"name": template}, "values": values},
    }


def told(obj):
    return {fault.path: fault.hint for fault in registry.app_faults(obj)}


def parts(values, template="tensorflow-training", revision=1):
    obj = app(values, template)
    assert registry.app_faults(obj) == ()
    return expand.expand_app(obj, revision)


def gang(values, template="tensorflow-training"):
    """The members of the job that values become, as its pods will be."""
    obj = app(values, template)
    job = expand.job_manifest(obj, expand.expand_app(obj, 1), revision=1)
    job["metadata"]["uid"] = "1"
    _, made = registry.expand(job, registry.ports_of(job))
    return made


def container(values, place=FIRST):
    return gang(values).member(place).template["spec"]["containers"][0]


MERGES = {
    "what is not given stays": ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
    "null takes a default away": ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}),
    "a list replaces a list": ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    "null where nothing is stays": ({}, {"a": None}, {"a": None}),
}


@pytest.mark.parametrize(("below", "above", "result"), MERGES.values(), ids=MERGES)
def test_values_are_put_over_each_other(below, above, result):
    assert merged(below, above) == result


SETTINGS = {
    "a.b=1": {"a": {"b": 1}},
    "a=1,b=two": {"a": 1, "b": "two"},
    "a=true,b=null,c=False": {"a": True, "b": None, "c": False},
    # Fractions, and numbers that begin with 0, stay text: no digit is lost.
    "a=0.0005,b=007,c=0": {"a": "0.0005", "b": "007", "c": 0},
    "a={1,x}": {"a": [1, "x"]},
    "a={}": {"a": []},
    "a[1].b=2": {"a": [None, {"b": 2}]},
    r"a=x\,y,b\.c=1": {"a": "x,y", "b.c": 1},
    "a=b=c": {"a": "b=c"},
    "a=": {"a": ""},
}


@pytest.mark.parametrize(("setting", "result"), SETTINGS.items(), ids=SETTINGS)
def test_a_setting_is_read_as_helm_reads_it(setting, result):
    assert with_setting({}, setting) == result


@pytest.mark.parametrize("setting", ["worker", "=1", ".a=1", "a[9999]=1", "a..b=1"])
def test_a_setting_that_says_nothing_is_refused(setting):
    with pytest.raises(BadRequest, match="--set"):
        with_setting({}, setting)


def test_numbers_of_workers_and_parameter_servers_are_enough():
    """H-10, H-48"""
    made = gang({"worker": {"number": 3, "gpuCount": 0}, "ps": {"number": 1}})

    assert [str(each.place) for each in made.members] == ["worker-0", "worker-1", "worker-2", "ps-0"]
    assert made.success == ((ReplicaId("worker", 0), ReplicaId("worker", 1), ReplicaId("worker", 2)),), (
        "all workers, no ps"
    )


@pytest.mark.parametrize(("workers", "servers"), [(1, 1), (2, 2), (3, 1)])
def test_every_member_is_told_of_exactly_all_members(workers, servers):
    """H-12, H-37, H-07"""
    made = gang({"worker": {"number": workers, "gpuCount": 0}, "ps": {"number": servers}})
    envs = [
        {each["name"]: each.get("value") for each in member.template["spec"]["containers"][0]["env"]}
        for member in made.members
    ]

    assert len({env["CLUSTER_CONFIG"] for env in envs}) == 1
    hosts = envs[0]["CLUSTER_CONFIG"]
    assert (hosts.count(":8000"), hosts.count(":9000")) == (workers, servers)
    assert [env["POD_NAME"] for env in envs] == [str(member.place) for member in made.members]


def test_hyperparameters_reach_the_command_to_the_digit_and_zero_does_not():
    """H-38, H-39, H-40"""
    some = container({**CPU, "hyperparams": {"epochs": 7, "batchsize": 0, "learningrate": 0.001}})
    tiny = container({**CPU, "hyperparams": {"learningrate": "0.00010"}})
    large = container({**CPU, "hyperparams": {"epochs": 1e6}})

    assert [word for word in some["args"] if "logdir" not in word] == ["--epochs=7", "--lr=0.001"]
    assert "--lr=0.00010" in tiny["args"]
    assert "--epochs=1000000" in large["args"]


def test_each_revision_has_a_log_folder_of_its_own_below_the_one_that_is_shown():
    """H-14"""
    first, second = parts(CPU), parts(CPU, revision=2)
    (board,) = first.boards.values()

    assert board["logDir"]["pvc"] == [{"name": "mnist-data", "subPath": ["logs"]}]
    assert (first.results, second.results) == (
        "claim mnist-data, folder logs/mnist-1",
        "claim mnist-data, folder logs/mnist-2",
    )


def test_the_tensorboard_is_reached_from_where_the_values_say():
    """H-42"""
    told = [
        board["serviceType"]
        for chosen in ({}, {"tensorboard": {"serviceType": "NodePort"}}, {"tensorboard": {"serviceType": "ClusterIP"}})
        for board in parts({**CPU, **chosen}).boards.values()
    ]

    assert told == ["LoadBalancer", "NodePort", "ClusterIP"]


def test_roles_have_images_policies_ports_and_gpus_of_their_own():
    """H-35, H-36, H-46"""
    values = {
        "worker": {"image": "one:1", "imagePullPolicy": "Always", "port": 7000, "gpuCount": 2},
        "ps": {"image": "two:2", "port": 7001},
    }
    worker, server = container(values), container(values, ReplicaId("ps", 0))

    assert (worker["image"], worker["imagePullPolicy"], worker["ports"][0]["containerPort"]) == (
        "one:1",
        "Always",
        7000,
    )
    assert (server["image"], server["imagePullPolicy"], server["ports"][0]["containerPort"]) == (
        "two:2",
        "IfNotPresent",
        7001,
    )
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert "nvidia.com/gpu" not in str([server["resources"], container(CPU)["resources"]])


def test_both_spellings_of_the_mount_path_mean_the_same():
    """H-43"""
    spelled = [{"mountPath": "/x"}, {"persistence": {"mountPath": "/x"}}, {}]
    mounts = [container({**CPU, **each})["volumeMounts"][0]["mountPath"] for each in spelled]
    both = told(app({**CPU, "mountPath": "/x", "persistence": {"mountPath": "/y"}}))

    assert mounts == ["/x", "/x", "/data"]
    assert "remove one of them" in both["spec.values.persistence.mountPath"]
    assert told(app({**CPU, "mountPath": "/x", "persistence": {"mountPath": "/x"}})) == {}


def test_a_claim_is_bound_by_label_or_made_anew():
    """H-17, H-44, H-45"""
    chosen = parts({**CPU, "persistence": {"pvc": {"storage": "7Gi", "matchLabels": {"train": "mnist"}}}})
    anew = parts(CPU)

    assert chosen.claims["mnist-data"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "7Gi"}},
        "storageClassName": "",
        "selector": {"matchLabels": {"train": "mnist"}},
    }
    assert "storageClassName" not in anew.claims["mnist-data"]


def test_a_command_of_ones_own_takes_the_place_of_the_shipped_trainer():
    shipped, own = parts(CPU), parts({**CPU, "command": ["python3", "main.py"]})
    entry = container({**CPU, "trainer": ""})

    assert (shipped.trainer, own.trainer) == ("parameter-server", "")
    assert container({**CPU, "command": ["python3", "main.py"]})["command"] == ["python3", "main.py"]
    assert "command" not in entry, "the image's own program gets the flags"


SLIPS = {
    "a word that is nearly right": ({"worker": {"numbr": 2}}, "worker.numbr", 'did you mean "number"?'),
    "one that is there already": ({"worker": {"number": 1, "nmber": 2}}, "worker.nmber", 'did you mean "number"?'),
    "an empty block": ({"worker": None}, "worker", "worker is empty"),
    "no workers": ({"worker": {"number": 0}}, "worker.number", "at least 1"),
    "less than no servers": ({"ps": {"number": -1}}, "ps.number", "at least 0"),
    "half a GPU": ({"worker": {"gpuCount": 0.5}}, "worker.gpuCount", "an integer"),
    "a wrong policy": ({"ps": {"imagePullPolicy": "Often"}}, "ps.imagePullPolicy", "IfNotPresent"),
    "a relative path": ({"mountPath": "data"}, "mountPath", "absolute"),
    "a size that is none": ({"persistence": {"pvc": {"storage": "big"}}}, "persistence.pvc.storage", "5Gi"),
    "memory that is none": ({"worker": {"memory": "much"}}, "worker.memory", "quantity"),
    "a rate that is no number": ({"hyperparams": {"learningrate": "fast"}}, "hyperparams.learningrate", "number"),
    "a list where values are": ([], "", "object"),
}


@pytest.mark.parametrize(("values", "where", "word"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_named_where_it_is(values, where, word):
    """H-33, H-34, H-36"""
    found = told(app(values))

    assert word in found[f"spec.values.{where}".rstrip(".")]


def test_several_slips_are_named_at_once():
    assert len(told(app({"worker": {"numbr": 1, "port": 0}, "ps": {"number": -1}}))) == 3


def test_a_template_is_found_by_its_names_and_a_misspelled_one_is_guessed():
    """H-53"""
    names = ("tensorflow-training", "ack-tensorflow-training", "incubator/acs-tensorflow-training")

    assert {find(name).name for name in names} == {"tensorflow-training"}
    with pytest.raises(Invalid, match='did you mean "acs-tensorflow-training"'):
        find("incubator/acs-tensorflow-tarining")
    with pytest.raises(Invalid, match="the templates are: tensorflow-training"):
        find("sorting")


NAMES = {
    "one letter": ("a", True),
    "64 letters": ("a" * 64, True),
    "64 with a hyphen near the end": ("a" * 62 + "-a", True),
    "digits first": ("9lives", True),
    "65 letters": ("a" * 65, False),
    "nothing": ("", False),
    "an underscore": ("a_b", False),
    "another language": ("训练", False),
    "a hyphen first": ("-a", False),
    "a dot": ("a.b", False),
}


@pytest.mark.parametrize(("name", "is_fine"), NAMES.values(), ids=NAMES)
def test_a_name_has_1_to_64_letters_digits_and_hyphens(name, is_fine):
    """S-17"""
    assert (told(app(CPU, name=name)) == {}) is is_fine


def test_names_of_jobs_are_short_and_differ_where_applications_do():
    long, other = "a" * 64, "a" * 63 + "b"

    assert expand.stem_of_app("mnist") == "mnist"
    assert len(expand.stem_of_app(long)) <= expand.MAX_STEM
    assert expand.stem_of_app(long) != expand.stem_of_app(other)
    assert expand.stem_of_app("9lives") == "app-9lives"


def test_specs_are_told_apart_by_what_is_trained_and_by_nothing_else():
    spec = app(CPU)
    stopped = {**spec, "spec": {**spec["spec"], "suspend": True, "revisionHistoryLimit": 1, "rerun": 0}}
    whole = app({"worker": {"gpuCount": 0.0}})
    text = app({"worker": {"gpuCount": "0"}})
    again = {**spec, "spec": {**spec["spec"], "rerun": 1}}

    assert expand.digest_of(spec) == expand.digest_of(stopped) == expand.digest_of(whole) == expand.digest_of(text)
    assert len({expand.digest_of(each) for each in (spec, again, app({}))}) == 3


CODE = {"git": {"url": "https://example.org/team/code.git"}, "command": "python3 train.py"}


def trained(**values):
    return parts({**CODE, **values}, "model-training")


def test_one_replica_knows_of_no_others_and_several_do():
    """D-01, S-20, S-21"""
    alone, together = trained(), trained(distributed=True, ps=1, workers=2)

    assert (alone.kind, len(alone.spec["replicaSpecs"])) == ("GenericJob", 1)
    assert together.kind == "TensorFlowTrainingJob"
    assert [(each["type"], each["replicas"]) for each in together.spec["replicaSpecs"]] == [("worker", 2), ("ps", 1)]


def test_a_framework_is_a_kind_and_an_image():
    """S-18, S-19"""
    images = {
        name: trained(framework=name, distributed=True).spec["replicaSpecs"][0]["template"]["spec"]["containers"][0]
        for name in ("tensorflow", "keras", "pytorch", "python", "example.org:5000/team/own:1")
    }

    assert images["example.org:5000/team/own:1"]["image"] == "example.org:5000/team/own:1"
    assert images["pytorch"]["name"] == "pytorch"
    assert "python" in images["python"]["image"]
    assert "name of an image" in told(app({**CODE, "framework": "No Such"}, "model-training"))["spec.values.framework"]
    assert "spec.values.framework" in told(app({**CODE, "framework": ""}, "model-training"))


def test_code_of_the_training_service_finds_what_it_looks_for():
    """D-02"""
    told = trained(framework="acme/caffe:1", data={"claim": "tfoss"}).spec["replicaSpecs"][0]
    alone = trained().spec["replicaSpecs"][0]

    assert told["template"]["spec"]["containers"][0]["env"] == [
        {"name": "GIT_URL", "value": CODE["git"]["url"]},
        {"name": "DEFAULT_REMOTE_VOLUME_PATH", "value": "/input"},
    ]
    assert [each["name"] for each in alone["template"]["spec"]["containers"][0]["env"]] == ["GIT_URL"]


def test_there_is_a_tensorboard_for_each_worker_beside_the_one_for_all():
    """S-31, S-36"""
    watched = trained(distributed=True, workers=2, logDir="/output/training_logs").boards
    single = trained(logDir="/output/training_logs").boards
    kept = trained(logDir="/output/l", data={"secret": "keys", "bucket": "oss://b/f"}).boards

    assert list(watched) == ["mnist", "mnist-tensorboard0", "mnist-tensorboard1"]
    assert watched["mnist-tensorboard1"]["logDir"]["pvc"][0]["subPath"] == ["mnist-1/worker-1/training_logs"]
    assert list(single) == ["mnist"]
    assert trained().boards == {}
    assert kept["mnist"]["logDir"]["s3"]["uri"] == ["s3://b/f/mnist-1/worker-0/l/"]


def test_data_come_from_a_claim_or_a_bucket_or_results_stay_with_the_application():
    """S-23, S-25"""
    claimed, bucket = trained(data={"claim": "tfoss"}), trained(data={"secret": "keys", "bucket": "s3://b"})
    alone = trained()

    assert (claimed.spec["input"], claimed.spec["output"]) == ({"claim": "tfoss"}, {"claim": "tfoss"})
    assert bucket.spec["input"] == bucket.spec["output"] == {"bucket": {"secret": "keys"}}
    assert "input" not in alone.spec
    assert list(alone.claims) == ["mnist-data"]
    assert "deleted with the application" in alone.results


WRONG = {
    "no code": ({"command": "x"}, "git"),
    "no command": ({"git": CODE["git"], "command": " "}, "command"),
    "ssh": ({**CODE, "git": {"url": "ssh://git@example.org/a"}}, "git.url"),
    "ssh, in short": ({**CODE, "git": {"url": "git@example.org:a/b.git"}}, "git.url"),
    "several workers that are not distributed": ({**CODE, "workers": 2}, "workers"),
    "parameter servers of PyTorch": ({**CODE, "framework": "pytorch", "distributed": True, "ps": 1}, "ps"),
    "a relative log folder": ({**CODE, "logDir": "logs"}, "logDir"),
    "a log folder that nobody keeps": ({**CODE, "logDir": "/tmp/logs"}, "logDir"),
    "a log folder that leads out": ({**CODE, "logDir": "/output/../etc"}, "logDir"),
    "a claim and a bucket": ({**CODE, "data": {"claim": "a", "secret": "b"}}, "data.secret"),
}


@pytest.mark.parametrize(("values", "where"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_trained_is_refused_before_anything_starts(values, where):
    """S-27, S-32"""
    assert f"spec.values.{where}" in told(app(values, "model-training"))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda each: each.name)
def test_every_value_is_explained(template):
    """H-30"""
    rows = rows_of(template)

    assert [where for where, _, meaning in rows if not meaning] == []
    schema = Path(__file__).parents[3] / "charts" / template.name / "values.schema.json"
    assert json.loads(schema.read_text())["additionalProperties"] is False
