"""Where code, data and values come from and results go: what is refused, and what a pod is made of."""

import subprocess

import pytest

from paceline.kinds import registry
from paceline.kinds.pod_injection import CONFINED, FIND_REQUIREMENTS, LIMITS, REQUESTS
from paceline.model.gang import PodTools, ReplicaId
from tests.unit.kinds.manifests import (
    colossalai,
    deepspeed,
    env_of,
    gang_of,
    generic,
    mpi,
    one_fault,
    pytorch,
    replica,
    said,
    template,
    tensorflow,
    xgboost,
)

URL = "https://example.org/team/code.git"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = f"sha256:{'0' * 64}"
GIT = {"git": {"url": URL}}
BUCKET = {"url": "s3://results/runs", "endpoint": "https://store.example.org", "secret": "keys"}
EVERY = {
    "pytorch": pytorch,
    "generic": generic,
    "tensorflow": tensorflow,
    "xgboost": xgboost,
    "mpi": mpi,
    "deepspeed": deepspeed,
    "colossalai": colossalai,
}


def git(**more):
    return {"source": {"git": {"url": URL, **more}}}


WRONG = {
    "ssh is refused": (
        git(url="git@example.org:team/code.git"),
        "ssh is not supported; use https: https://example.org/team",
    ),
    "ssh with a scheme too": (
        git(url="ssh://git@example.org/team/code.git"),
        "use https: https://example.org/team/code",
    ),
    "git's own protocol too": (git(url="git://example.org/code.git"), "ssh is not supported; use https"),
    "a path is no address": (git(url="/home/me/code"), "must be an https:// or http:// URL"),
    "an address without a repository": (git(url="https://example.org/"), "the URL of a repository"),
    "a port that is none": (git(url="https://example.org:port/x"), "must be an https:// or http:// URL"),
    "a revision that is an option": (git(revision="--upload-pack=x"), "a branch, a tag or a full commit"),
    "a folder outside": (git(directory="../x"), "without a leading / and without .."),
    "no source at all": ({"source": {}}, "git or archive"),
    "two sources": ({"source": {**GIT, "archive": {"digest": DIGEST, "claim": "c"}}}, "git is also set"),
    "an archive in two places": (
        {"source": {"archive": {"digest": DIGEST, "claim": "c", "configMap": "m"}}},
        "set either configMap or claim",
    ),
    "requirements outside": ({"source": {**GIT, "requirements": "/etc/x"}}, "without a leading /"),
    "a relative folder": ({"input": {"directory": "d"}}, "must be an absolute path, such as /home/me/d"),
    "a folder with ..": ({"input": {"directory": "/a/../b"}}, "must not contain .."),
    "the whole disk": ({"output": {"directory": "/"}}, "name a directory"),
    "no place": ({"input": {}}, "one of claim, directory and bucket"),
    "two places": ({"output": {"claim": "c", "directory": "/d"}}, "claim is also set"),
    "a bucket that is none": ({"input": {"bucket": {"url": "http://x/y"}}}, "s3://BUCKET/FOLDER or oss://"),
    "a bucket without address": ({"input": {"bucket": {}}}, "s3://BUCKET/FOLDER, or a secret"),
    "a bucket's folder with ..": ({"input": {"bucket": {"url": "s3://abc/../x"}}}, "the folder must not contain"),
    "an endpoint that is none": ({"input": {"bucket": {"url": "s3://abc", "endpoint": "x"}}}, "https:// or http://"),
    "a path without a claim": ({"input": {"directory": "/d", "path": "x"}}, "set claim too"),
    "staging without a bucket": ({"output": {"claim": "c", "staging": {}}}, "staging is only used for a bucket"),
    "staging of no size": ({"output": {"bucket": BUCKET, "staging": {"size": "0"}}}, "greater than 0"),
    "staging of an odd size": ({"output": {"bucket": BUCKET, "staging": {"size": "x"}}}, "size"),
    "a value that is a list": ({"hyperparameters": {"values": {"a": [1]}}}, "must be a number, a string"),
    "a value of an odd name": (
        {"hyperparameters": {"values": {"a b": 1}, "names": {"a b": "--x"}}},
        "must start with a",
    ),
    "a text with a zero byte": ({"hyperparameters": {"values": {"a": "x\0"}}}, "zero byte"),
    "a name for nothing": (
        {"hyperparameters": {"values": {"lr": 1}, "names": {"rl": "--x"}}},
        "spec.hyperparameters.values has no such entry",
    ),
    "a flag that is none": ({"hyperparameters": {"values": {"lr": 1}, "names": {"lr": "; rm"}}}, "must be a flag"),
    "two of one flag": ({"hyperparameters": {"values": {"a": 1, "b": 2}, "names": {"a": "--b"}}}, "must be unique"),
    "a variable that is none": (
        {"hyperparameters": {"values": {"lr": 1}, "names": {"lr": "a-b"}, "passedAs": "Environment"}},
        "the name of an environment variable",
    ),
}


@pytest.mark.parametrize(("spec", "hint"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_right_is_refused_with_what_would_be(spec, hint):
    assert hint in one_fault(generic(**spec))


WITH_PASSWORD = (
    "https://me:hunter22@example.org/x.git",
    "HTTPS://me:hunter22@example.org/x.git",
    "https://me:a@hunter22@example.org/x.git",
    "https://me:a/hunter22@example.org/x.git",
    "https://me:a#hunter22@example.org/x.git",
    "https://me:a?hunter22@example.org/x.git",
    "ssh://me:hunter22@example.org/x.git",
    "me:hunter22@example.org:x.git",
    "me:hunter22@example.org/x.git",
)


@pytest.mark.parametrize("url", WITH_PASSWORD)
def test_s28_a_password_in_an_address_is_refused_and_not_repeated(url):
    fault = one_fault(generic(**git(url=url)))

    assert "hunter22" not in fault


def test_a_mount_in_the_way_is_named():
    mounted = template(volumes=[{"name": "v", "emptyDir": {}}], volumeMounts=[{"name": "v", "mountPath": "/output/"}])
    job = generic(replica(template=mounted), output={"claim": "c"})

    assert "spec.output is mounted there" in one_fault(job)


def test_claims_that_a_job_needs_are_looked_for():
    job = generic(source={**GIT, "cache": "cached"}, input={"claim": "data"}, output={"claim": "results", "path": "a"})

    assert dict(registry.claims_of(job)) == {
        "spec.source.cache": "cached",
        "spec.input.claim": "data",
        "spec.output.claim": "results",
    }


@pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY)
def test_every_kind_may_be_fed(kind):
    job = kind(source=GIT, input={"claim": "d"}, output={"bucket": BUCKET}, hyperparameters={"values": {"lr": 0.001}})

    assert said(registry.faults(job)) == []
    for member in gang_of(job, commit=COMMIT).members:
        spec = member.template["spec"]
        names = [each["name"] for each in spec["initContainers"]]
        expected = ["paceline-clone", "paceline-install", "paceline-restore", "paceline-output"]
        assert names[:4] == expected
        for container in spec["containers"]:
            mounts = {each["mountPath"] for each in container["volumeMounts"]}
            assert {"/source", "/input", "/output"} <= mounts
            assert container["workingDir"] == "/source"


@pytest.mark.parametrize("kind", [mpi, deepspeed, colossalai], ids=["mpi", "deepspeed", "colossalai"])
def test_where_a_launcher_starts_the_others_only_it_is_handed_the_values(kind):
    gang = gang_of(kind(hyperparameters={"values": {"lr": 0.001}}))
    told = [each.place for each in gang.members if "--lr=0.001" in str(each.template)]

    assert told == [gang.leader]


@pytest.mark.parametrize("kind", [mpi, deepspeed, colossalai], ids=["mpi", "deepspeed", "colossalai"])
def test_but_variables_are_handed_to_all_since_processes_have_those_of_the_worker_they_run_in(kind):
    gang = gang_of(kind(hyperparameters={"values": {"lr": 0.001}, "passedAs": "Environment"}))

    for member in gang.members:
        assert {"name": "LR", "value": "0.001"} in member.template["spec"]["containers"][0]["env"]


def inits(job, place="worker-0", **more):
    role, _, index = place.rpartition("-")
    member = gang_of(job, **more).member(ReplicaId(role, int(index)))
    return {each["name"]: each for each in member.template["spec"]["initContainers"]}


def test_one_commit_is_looked_up_for_all_and_then_cloned_by_each():
    job = generic(**git(revision="main", secret="reader"))
    before, later = gang_of(job), gang_of(job, commit=COMMIT)

    assert before.resolve["spec"]["containers"][0]["command"][3:] == [
        *("resolve", "--url", URL, "--revision", "main", "--secret", "/paceline-secrets/git")
    ]
    assert (later.resolve, later.commit) == (None, COMMIT)
    assert COMMIT in inits(job, "worker-1", commit=COMMIT)["paceline-clone"]["command"]


def test_a_full_commit_need_not_be_looked_up():
    gang = gang_of(generic(**git(revision=COMMIT)))

    assert (gang.resolve, gang.commit) == (None, COMMIT)


def test_our_own_containers_have_the_image_that_the_controller_was_given():
    """And the pods that have such a container, its pull secrets, beside those of their author."""
    tools = PodTools(image="registry.example/paceline:1", pull_policy="Always", pull_secrets=("mirror", "theirs"))
    template_of_author = template()
    template_of_author["spec"]["imagePullSecrets"] = [{"name": "theirs"}]
    job = generic(
        replica(template=template_of_author), **git(), output={"bucket": BUCKET, "staging": {"medium": "Claim"}}
    )
    resolved = gang_of(job, tools=tools).resolve["spec"]
    member = gang_of(job, commit=COMMIT, tools=tools).members[0]
    pods = (resolved, member.template["spec"], member.keeping.flush["spec"])

    for pod in pods:
        assert pod["imagePullSecrets"] == [{"name": "theirs"}, {"name": "mirror"}]
    containers = [container for pod in pods for container in (*pod.get("initContainers", ()), *pod["containers"])]
    ours = [container for container in containers if container["command"][:3] == ["python", "-m", "paceline.podtools"]]
    assert len(ours) == 5
    for container in ours:
        assert (container["image"], container["imagePullPolicy"]) == (tools.image, "Always")


def test_pods_without_a_container_of_ours_keep_their_pull_secrets():
    job = generic(hyperparameters={"values": {"lr": 0.1}})

    assert "imagePullSecrets" not in gang_of(job, tools=PodTools(pull_secrets=("mirror",))).members[0].template["spec"]


def test_only_our_own_containers_see_the_secrets():
    job = generic(**git(secret="reader"), output={"bucket": BUCKET}, input={"bucket": BUCKET})
    spec = gang_of(job, commit=COMMIT).members[0].template["spec"]
    ours = {"paceline-clone", "paceline-input", "paceline-restore", "paceline-output"}

    seeing = {
        container["name"]
        for container in (*spec["initContainers"], *spec["containers"])
        if any("secret" in mount["name"] for mount in container["volumeMounts"])
    }

    assert seeing == ours


def test_a_command_runs_in_the_subdirectory_unless_it_has_a_folder_of_its_own():
    inside = gang_of(generic(**git(directory="a/b")), commit=COMMIT).members[0].template["spec"]["containers"][0]
    own = generic(replica(template=template(workingDir="/mnt")), **git())

    assert inside["workingDir"] == "/source/a/b"
    assert gang_of(own, commit=COMMIT).members[0].template["spec"]["containers"][0]["workingDir"] == "/mnt"


@pytest.mark.parametrize(
    ("env", "path"),
    [
        ([], "/paceline/site"),
        ([{"name": "PYTHONPATH", "value": "/mine"}], "/paceline/site:/mine"),
        ([{"name": "PYTHONPATH", "value": ""}], "/paceline/site"),
    ],
    ids=["none", "one of their own", "an empty one"],
)
def test_packages_are_found_before_those_of_the_image(env, path):
    job = generic(replica(template=template(env=env)), **git())

    assert env_of(gang_of(job, commit=COMMIT).members[0].template["spec"]["containers"][0])["PYTHONPATH"] == path


def test_a_python_path_from_elsewhere_is_left_alone():
    env = [{"name": "PYTHONPATH", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]
    main = gang_of(generic(replica(template=template(env=env)), **git()), commit=COMMIT).members[0]

    assert main.template["spec"]["containers"][0]["env"] == env


def test_packages_are_installed_in_the_authors_image_and_not_at_all_if_they_say_so():
    step = inits(generic(**git()), commit=COMMIT)["paceline-install"]
    named = generic(source={**GIT, "requirements": "deps/gpu.txt", "cache": "cached"})
    none = generic(source={**GIT, "requirements": ""})

    assert step["image"] == "python:3.11"
    assert step["command"][4:] == ["may", "/source/requirements.txt"]
    assert inits(named, commit=COMMIT)["paceline-install"]["command"][4:] == ["must", "/source/deps/gpu.txt"]
    assert "paceline-install" not in inits(none, commit=COMMIT)


def test_a_cache_is_for_the_steps_to_write_and_for_the_command_to_read():
    job = generic(source={**GIT, "cache": "cached"})
    steps, spec = inits(job, commit=COMMIT), gang_of(job, commit=COMMIT).members[0].template["spec"]
    mount = {"name": "paceline-cache", "mountPath": "/paceline-cache"}

    assert all(mount in steps[f"paceline-{name}"]["volumeMounts"] for name in ("clone", "install"))
    assert {**mount, "readOnly": True} in spec["containers"][0]["volumeMounts"]
    assert steps["paceline-clone"]["command"][-2:] == ["--cache", "/paceline-cache"]
    assert "--cache" not in inits(generic(**git()), commit=COMMIT)["paceline-clone"]["command"]


@pytest.mark.parametrize(
    "where", [{"configMap": "mine"}, {"claim": "mine", "path": "a/b.tar.gz"}], ids=["map", "claim"]
)
def test_an_archive_is_unpacked_where_a_repository_would_be(where):
    step = inits(generic(source={"archive": {"digest": DIGEST, **where}}))["paceline-clone"]
    file = f"/paceline-archive/{where.get('path', 'source.tar.gz')}"

    assert step["command"][3:] == [
        "unpack",
        "--file",
        file,
        "--digest",
        DIGEST,
        "--into",
        "/source",
        "--tools",
        "/paceline",
        "--packages",
        "/source/requirements.txt",
    ]


def test_folders_and_claims_are_shown_as_they_are_and_results_keep_apart():
    job = generic(input={"claim": "data", "path": "a"}, output={"claim": "results", "path": "b/"})
    spec = gang_of(job).members[1].template["spec"]
    mounts = {each["mountPath"]: each for each in spec["containers"][0]["volumeMounts"]}

    assert (mounts["/input"]["subPath"], mounts["/input"]["readOnly"]) == ("a", True)
    assert mounts["/output"]["subPath"] == "b/demo/worker-1"
    assert spec["initContainers"] == []


def claims_and_mounts(job):
    """Return the volumes of claims of a pod, and its mounts by path as (volume, subPath, is read-only)."""
    spec = gang_of(job).members[1].template["spec"]
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]
        for volume in spec["volumes"]
        if "persistentVolumeClaim" in volume
    }
    mounts = {
        mount["mountPath"]: (mount["name"], mount.get("subPath", ""), mount.get("readOnly", False))
        for container in spec["containers"]
        for mount in container["volumeMounts"]
    }
    return claims, mounts


def test_a_claim_with_input_and_output_is_one_volume_since_a_kubelet_mounts_no_claim_twice():
    claims, mounts = claims_and_mounts(generic(input={"claim": "data", "path": "a"}, output={"claim": "data"}))

    assert claims == {"paceline-input": {"claimName": "data"}}
    assert mounts["/input"] == ("paceline-input", "a", True)
    assert mounts["/output"] == ("paceline-input", "demo/worker-1", False)


def test_a_claim_that_the_authors_template_mounts_is_not_mounted_by_a_second_volume():
    volume = {"name": "mine", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}}
    pod = template(volumes=[volume], volumeMounts=[{"name": "mine", "mountPath": "/mine"}])
    data = {"claim": "data"}
    job = generic(replica(template=pod), source={**GIT, "cache": "data"}, input=data, output=data)
    claims, mounts = claims_and_mounts(job)
    init_containers = gang_of(job, commit=COMMIT).members[0].template["spec"]["initContainers"]

    assert claims == {"mine": {"claimName": "data"}}
    assert mounts["/mine"] == ("mine", "", True), "its volume was read-only, so its mount is"
    assert mounts["/output"] == ("mine", "demo/worker-1", False)
    assert {mount["name"] for mount in init_containers[0]["volumeMounts"]} >= {"mine"}


def test_an_author_who_names_a_claim_twice_gets_one_volume_that_is_read_only_only_if_both_are():
    names = ("first", "second")
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": "data", "readOnly": True}} for name in names]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    claims, mounted = claims_and_mounts(generic(replica(template=template(volumes=volumes, volumeMounts=mounts))))

    assert claims == {"first": {"claimName": "data", "readOnly": True}}
    assert mounted == {"/first": ("first", "", True), "/second": ("first", "", True)}


def test_a_bucket_has_a_claim_of_its_own_for_each_member_unless_there_are_none_to_be_had():
    usual = gang_of(generic(output={"bucket": BUCKET, "staging": {"size": "3Gi", "storageClassName": "fast"}}))
    without = gang_of(generic(output={"bucket": BUCKET, "staging": {"medium": "Pod"}}))

    assert usual.members[0].keeping.claim["storageClassName"] == "fast"
    assert usual.members[0].keeping.claim["resources"] == {"requests": {"storage": "3Gi"}}
    assert usual.members[0].keeping.flush["spec"]["containers"][0]["command"][3] == "flush"
    assert (without.members[0].keeping.claim, without.members[0].keeping.flush) == (None, None)


def test_who_left_when_the_job_shrank_is_copied_for_like_those_who_stay():
    job = generic(output={"bucket": BUCKET})
    whole, shrunk = gang_of(job), gang_of(job, scaled_down=(ReplicaId("worker", 7), ReplicaId("worker", 0)))
    (member,) = shrunk.scaled_down
    words = member.keeping.flush["spec"]["containers"][0]["command"]
    volumes = {each["name"]: each for each in member.keeping.flush["spec"]["volumes"]}

    assert (whole.scaled_down, member.place, shrunk.members) == ((), ReplicaId("worker", 7), whole.members)
    assert words[words.index("--prefix") + 1] == "demo/worker-7"
    assert volumes["paceline-output"]["persistentVolumeClaim"]["claimName"].endswith("-worker-7-output")
    assert gang_of(generic(output={"claim": "c"}), scaled_down=(ReplicaId("worker", 7),)).scaled_down == ()
    assert gang_of(generic(input={"claim": "c"}), scaled_down=(ReplicaId("worker", 7),)).scaled_down == ()


def test_a_sidecar_has_time_for_its_last_copy():
    job = generic(
        replica(template={"spec": {**template()["spec"], "terminationGracePeriodSeconds": 0}}),
        output={"bucket": BUCKET},
    )

    assert gang_of(job).members[0].template["spec"]["terminationGracePeriodSeconds"] == 60
    assert (
        gang_of(generic(output={"bucket": BUCKET})).members[0].template["spec"]["terminationGracePeriodSeconds"] == 90
    )


def test_our_containers_are_of_the_same_user_as_the_command():
    job = generic(replica(template=template(securityContext={"runAsUser": 1000, "privileged": True})), **git())

    assert inits(job, commit=COMMIT)["paceline-clone"]["securityContext"] == {**CONFINED, "runAsUser": 1000}


def our_containers(job):
    """Return all containers that we add to the pods of a job, and those of its auxiliary pods, by name."""
    member = gang_of(job, commit=COMMIT).members[0]
    auxiliary = (gang_of(job).resolve, member.keeping.flush)
    steps = {name: step for name, step in inits(job, commit=COMMIT).items() if name.startswith("paceline-")}
    return {**steps, **{container["name"]: container for pod in auxiliary for container in pod["spec"]["containers"]}}


def test_our_containers_pass_the_policy_restricted_if_the_authors_do():
    nonroot = {"runAsNonRoot": True, **CONFINED}
    pod = template(securityContext=nonroot)
    ours = our_containers(generic(replica(template=pod), **git(), input={"bucket": BUCKET}, output={"bucket": BUCKET}))

    steps = {f"paceline-{step}" for step in ("clone", "install", "input", "restore", "output")}
    assert set(ours) == {"resolve", "flush", *steps}
    assert all(container["securityContext"] == nonroot for container in ours.values())


@pytest.mark.parametrize(
    ("main_resources", "limits", "requests"),
    [
        ({}, LIMITS, REQUESTS),
        ({"limits": {"cpu": "10m", "memory": "8Gi"}}, {"cpu": "10m", "memory": "8Gi"}, {**REQUESTS, "cpu": "10m"}),
    ],
)
def test_our_containers_have_requests_and_limits_so_that_a_quota_accepts_them(main_resources, limits, requests):
    pod = template(resources={**main_resources, "requests": {}})
    ours = our_containers(generic(replica(template=pod), **git(), output={"bucket": BUCKET}))
    beside = ours.pop("paceline-output")["resources"]

    assert all(container["resources"] == {"limits": limits, "requests": requests} for container in ours.values())
    assert beside == {"limits": LIMITS, "requests": REQUESTS}, (
        "it runs beside the command, and does not double its limits"
    )


def test_code_may_write_to_output_although_nothing_keeps_it():
    mounts = gang_of(generic(**git()), commit=COMMIT).members[0].template["spec"]["containers"][0]["volumeMounts"]
    own = template(volumes=[{"name": "v", "emptyDir": {}}], volumeMounts=[{"name": "v", "mountPath": "/output"}])
    kept = gang_of(generic(replica(template=own), **git()), commit=COMMIT).members[0].template["spec"]["containers"][0]

    assert "/output" in {each["mountPath"] for each in mounts}
    assert [each["name"] for each in kept["volumeMounts"] if each["mountPath"] == "/output"] == ["v"]


def test_s25_a_job_whose_results_go_nowhere_says_so_at_its_end():
    assert "files in /output were not kept" in gang_of(generic(**git())).success_note
    assert gang_of(generic(**git(), output={"claim": "c"})).success_note == ""
    assert gang_of(generic()).success_note == ""


def test_a_job_without_code_and_data_is_as_it_was():
    assert "initContainers" not in gang_of(generic()).members[0].template["spec"]


def test_dollars_in_an_address_are_not_filled_in_by_kubernetes():
    step = inits(generic(**git(url="https://example.org/$(HOME)/x.git")), commit=COMMIT)["paceline-clone"]

    assert "https://example.org/$$(HOME)/x.git" in step["command"]


@pytest.mark.parametrize(("must", "code", "told"), [("must", 1, "the code has no file"), ("may", 0, "")])
def test_a_requirements_file_that_is_named_and_not_there_is_said(must, code, told, tmp_path):
    text = FIND_REQUIREMENTS.replace("/dev/termination-log", str(tmp_path / "said"))
    missing = str(tmp_path / "requirements.txt")

    done = subprocess.run(["sh", "-c", text, "sh", must, missing], capture_output=True, text=True, check=False)

    assert done.returncode == code
    assert done.stderr == (f"{told} {missing}\n" if told else "")
