"""What pods and services look like."""

from base64 import b64decode
from dataclasses import replace

from paceline.model.gang import Gang, Member, RemoteLaunch
from paceline.plan.job.manifests import launch_manifest, pod_manifest, service_manifest
from paceline.plan.job.plan import NewPod
from paceline.plan.queueing.pod_groups import group_manifest
from tests.unit.plan.worlds import SITE, places

OWNER = {
    "apiVersion": "batch.tensorstack.dev/v1beta1",
    "kind": "GenericJob",
    "name": "demo",
    "uid": "u",
    "controller": True,
}
A, B = places(2)
TEMPLATE = {
    "metadata": {"labels": {"team": "vision", "replica-type": "mine"}, "annotations": {"note": "hi"}},
    "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "python"}]},
}
TWO = Gang(
    members=tuple(Member(place=place, template=TEMPLATE) for place in (A, B)),
    leader=A,
    success=((A,),),
    failure=(),
)


def made(place=A, attempt=0, of=TWO):
    return pod_manifest(SITE, of, NewPod(place=place, attempt=attempt), owner=OWNER)


def test_a_first_try_has_the_name_t9k_gives():
    assert made()["metadata"]["name"] == "demo-12345-worker-0"


def test_a_later_try_has_its_number_in_the_name_and_the_same_host():
    pod = made(B, attempt=2)

    assert pod["metadata"]["name"] == "demo-12345-worker-1-r2"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("demo-12345-worker-1", "demo-12345")


def test_labels_are_those_of_t9k_and_cannot_be_overwritten():
    assert made(B, attempt=1)["metadata"]["labels"] == {
        "team": "vision",
        "tensorstack.dev/owner-name": "demo",
        "tensorstack.dev/owner-kind": "GenericJob",
        "tensorstack.dev/component": "genericjob",
        "tensorstack.dev/component-type": "user",
        "replica-type": "worker",
        "replica-index": "1",
        "paceline.dev/attempt": "1",
    }


def test_only_the_leader_is_master():
    assert made(A)["metadata"]["labels"]["job-role"] == "master"
    assert "job-role" not in made(B)["metadata"]["labels"]


def test_restarts_are_never_left_to_the_node():
    assert made()["spec"]["restartPolicy"] == "Never"


def test_the_job_owns_the_pod():
    pod = made()

    assert pod["metadata"]["ownerReferences"] == [OWNER]
    assert pod["metadata"]["namespace"] == "default"
    assert pod["metadata"]["annotations"]["note"] == "hi"


def test_the_scheduler_reads_on_a_pod_how_many_are_placed_together():
    pod = pod_manifest(SITE, TWO, NewPod(place=A, attempt=1, gang_size=2), owner=OWNER)

    assert pod["metadata"]["annotations"]["paceline.dev/gang-size"] == "2"


def test_the_template_is_not_changed():
    made()

    assert TEMPLATE["spec"]["restartPolicy"] == "OnFailure"
    assert TEMPLATE["metadata"]["labels"] == {"team": "vision", "replica-type": "mine"}


def test_the_service_gives_every_member_a_name_before_it_is_ready():
    service = service_manifest(SITE, owner=OWNER)
    pod = made()

    assert service["metadata"]["name"] == pod["spec"]["subdomain"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["metadata"]["ownerReferences"] == [OWNER]


def test_what_members_need_to_start_processes_in_each_other_is_a_secret_of_the_job():
    """Its name is what templates mount, and the job's own files win over the program's."""
    launch = RemoteLaunch(files={"hostfile": "demo slots=1\n", "ssh": "mine"})
    secret = launch_manifest(SITE, launch, {"key": "s3cret", "ssh": "theirs"}, owner=OWNER)

    assert (secret["kind"], secret["metadata"]["name"]) == ("Secret", "demo-12345-launch")
    assert secret["metadata"]["ownerReferences"] == [OWNER]
    assert {name: b64decode(text).decode() for name, text in secret["data"].items()} == {
        "key": "s3cret",
        "ssh": "mine",
        "hostfile": "demo slots=1\n",
    }


def test_a_job_in_a_queue_tells_the_scheduler_so():
    metadata = made(of=replace(TWO, queue="research", priority=7))["metadata"]

    assert metadata["labels"]["scheduler.tensorstack.dev/queue"] == "research"
    assert metadata["labels"]["scheduler.tensorstack.dev/group-name"] == "demo"
    assert metadata["labels"]["scheduler.tensorstack.dev/role"] == "worker"
    assert metadata["annotations"]["paceline.dev/queue-priority"] == "7"


def test_a_job_without_a_queue_carries_no_word_of_one():
    metadata = made()["metadata"]

    assert not [name for name in (*metadata["labels"], *metadata["annotations"]) if "queue" in name]


def test_a_group_is_named_after_its_job_and_needs_all_members():
    group = group_manifest(SITE, replace(TWO, queue="gpus", priority=7), owner=OWNER)

    assert (group["metadata"]["name"], group["metadata"]["ownerReferences"]) == ("demo", [OWNER])
    assert group["spec"] == {"minMember": 2, "queue": "gpus", "priority": 7}


def test_a_group_of_an_elastic_job_needs_its_least():
    assert group_manifest(SITE, replace(TWO, least=1), owner=OWNER)["spec"]["minMember"] == 1
