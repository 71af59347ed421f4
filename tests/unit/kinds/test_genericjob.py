"""GenericJob: rules, limits, and the variables that are filled in."""

import json

import pytest

from paceline.kinds import registry
from paceline.model.gang import CleanUp, ReplicaId, RestartPolicy, RestartScope
from tests.unit.kinds.manifests import container_of, gang_of, generic, one_fault, replica, template

STEM = "demo-666ff"
SERVICE = {"service": {"ports": [{"name": "http", "port": 2222}]}}
A, B = ReplicaId("worker", 0), ReplicaId("worker", 1)


def written(*args, **container):
    return replica(template=template(args=list(args), **container))


def test_rules_name_places():
    job = generic(successRules=[{"worker": [0, 1]}], failureRules=[{"worker": [0]}, {"worker": [1]}])
    gang = gang_of(job)

    assert gang.success == ((A, B),)
    assert gang.failure == ((A,), (B,))
    assert gang.leader == A


def test_ranks_in_quotes_are_the_same():
    """Vector 9."""
    assert gang_of(generic(successRules=[{"worker": ["1"]}])) == gang_of(generic(successRules=[{"worker": [1]}]))


def test_defaults_are_t9ks():
    gang = gang_of(generic())

    assert (gang.clean_up, gang.scope, gang.backoff_limit) == (CleanUp.NONE, RestartScope.REPLICA, None)
    assert gang.role_limits == {"worker": 0}
    assert gang.members[0].restart is RestartPolicy.ON_FAILURE


RESTARTS = {
    "policy and limit": ({"policy": "Always", "limit": 2}, RestartPolicy.ALWAYS, 2),
    "a limit alone": ({"limit": 2}, RestartPolicy.ON_FAILURE, 2),
    "a policy alone, as other kinds write it": ("Never", RestartPolicy.NEVER, 0),
}


@pytest.mark.parametrize(("restart", "policy", "limit"), RESTARTS.values(), ids=RESTARTS)
def test_restart_policy_may_be(restart, policy, limit):
    gang = gang_of(generic(replica(restartPolicy=restart)))

    assert gang.members[0].restart is policy
    assert gang.role_limits == {"worker": limit}


def test_every_variable_is_filled_in():
    job = generic(
        written("$(type)-$(rank)", "of $(replicas[worker])", "at $(service.worker[1].host):$(service.port[http])"),
        **SERVICE,
    )

    assert registry.faults(job) == ()
    assert container_of(job, "worker-1")["args"] == [
        "worker-1",
        "of 2",
        f"at {STEM}-worker-1.{STEM}:2222",
    ]


def test_variables_are_filled_in_commands_and_environment_of_all_containers():
    one = template(
        command=["echo", "$(rank)"], env=[{"name": "ME", "value": "$(type)"}, {"name": "POD", "valueFrom": {}}]
    )
    one["spec"]["initContainers"] = [{"name": "wait", "image": "busybox", "args": ["$(rank)"]}]
    spec = gang_of(generic(replica(template=one))).members[1].template["spec"]

    assert spec["containers"][0]["command"] == ["echo", "1"]
    assert spec["containers"][0]["env"] == [{"name": "ME", "value": "worker"}, {"name": "POD", "valueFrom": {}}]
    assert spec["initContainers"][0]["args"] == ["1"]


@pytest.mark.parametrize("text", ["$(HOME)", "$$(rank)", "$(ls dir[0-9])", "$rank", "$(date)", "$(replica)"])
def test_what_is_no_variable_of_ours_stays_as_it_is(text):
    job = generic(written(text))

    assert registry.faults(job) == ()
    assert container_of(job)["args"] == [text]


def test_a_whole_tf_config_can_be_built():
    """Vector 8: the keras example, for rank 2 of 4 with port http = 2222."""
    hosts = ",".join(f'"$(service.worker[{rank}].host):$(service.port[http])"' for rank in range(4))
    text = f'{{"cluster": {{"worker": [{hosts}]}}, "task": {{"type": "$(type)", "index": $(rank)}}}}'
    one = template(env=[{"name": "TF_CONFIG", "value": text}])
    job = generic(replica(replicas=4, template=one), **SERVICE)

    assert registry.faults(job) == ()
    assert json.loads(container_of(job, "worker-2")["env"][0]["value"]) == {
        "cluster": {"worker": [f"{STEM}-worker-{rank}.{STEM}:2222" for rank in range(4)]},
        "task": {"type": "worker", "index": 2},
    }


def test_pods_carry_t9ks_labels_of_this_kind():
    one = {**template(), "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "hi"}}}
    metadata = gang_of(generic(replica(template=one))).members[1].template["metadata"]

    assert metadata == {
        "labels": {"team": "vision", "genericjob": "demo", "genericjob-replica": "demo-worker-1"},
        "annotations": {"note": "hi"},
    }


def test_an_empty_command_is_the_usual_one_in_debug_mode_and_after_a_pause():
    """Else the image's own program would start."""
    specs = [{"type": "worker", "command": []}]
    job = generic(runMode={"debug": {"enabled": True, "replicaSpecs": specs}})
    paused = generic(runMode={"pause": {"resumeSpecs": specs}})

    assert container_of(job)["command"] == ["sleep", "inf"]
    assert container_of(paused, resumes=1)["command"] == ["python"]


def test_debug_mode_and_resume_work_here_too():
    job = generic(runMode={"debug": {"enabled": True}, "pause": {"resumeSpecs": [{"type": "worker", "args": ["x"]}]}})
    plain = generic(runMode={"pause": {"resumeSpecs": [{"type": "worker", "args": ["$(rank)"]}]}})

    assert container_of(job)["command"] == ["sleep", "inf"]
    assert container_of(plain, "worker-1", resumes=1)["args"] == ["1"]


ARGS = "spec.replicaSpecs[0].template.spec.containers[0].args[0]"
FAULTS = {
    "no success rules": (generic(successRules=[]), "spec.successRules: [] is not allowed; must have at least 1 entry"),
    "a rule about nobody": (generic(successRules=[{}]), "spec.successRules[0]: {} is not allowed"),
    "a rule about no rank": (
        generic(failureRules=[{"worker": []}]),
        "spec.failureRules[0].worker: [] is not allowed; must have at least 1 entry",
    ),
    "a rule about a type that is not there": (
        generic(successRules=[{"wroker": [0]}]),
        'spec.successRules[0]: \'wroker\' is not allowed; supported values: "worker", did you mean "worker"?',
    ),
    "a rule about a rank that is not there": (
        generic(failureRules=[{"worker": [0, 2]}]),
        "spec.failureRules[0].worker[1]: 2 is not allowed; the ranks of worker are 0 to 1",
    ),
    "a rank that is no number": (
        generic(failureRules=[{"worker": ["first"]}]),
        "spec.failureRules[0].worker[0]: 'first' is not allowed; the ranks of worker are 0 to 1",
    ),
    "a rank of ten thousand digits": (
        generic(failureRules=[{"worker": ["9" * 10_000]}]),
        "spec.failureRules[0].worker[0]: '999",
    ),
    "ExitCode, which this kind has not": (
        generic(replica(restartPolicy={"policy": "ExitCode"})),
        "spec.replicaSpecs[0].restartPolicy.policy: 'ExitCode' is not allowed; supported values:",
    ),
    "a variable about a type that is not there": (
        generic(written("$(replicas[wrker])")),
        (
            f"{ARGS}: '$(replicas[wrker])' is not allowed; "
            'the job has no replica type of this name, did you mean "worker"?'
        ),
    ),
    "a variable about a type unlike any": (
        generic(written("$(replicas[ps])")),
        f"{ARGS}: '$(replicas[ps])' is not allowed; the job has no replica type of this name; its types are worker",
    ),
    "a variable about a rank that is not there": (
        generic(written("$(service.worker[2].host)"), **SERVICE),
        f"{ARGS}: '$(service.worker[2].host)' is not allowed; the ranks of worker are 0 to 1",
    ),
    "a host of a type that is not there": (
        generic(written("$(service.ps[0].host)"), **SERVICE),
        f"{ARGS}: '$(service.ps[0].host)' is not allowed; the job has no replica type of this name",
    ),
    "a port that is not there": (
        generic(written("$(service.port[htp])"), **SERVICE),
        f"{ARGS}: '$(service.port[htp])' is not allowed; the Service has no port of this name, did you mean \"http\"?",
    ),
    "a service that is not there": (
        generic(written("$(service.port[http])")),
        f"{ARGS}: '$(service.port[http])' is not allowed; the job has no Service; set spec.service.ports",
    ),
    "a variable in the environment": (
        generic(written(env=[{"name": "HOST", "value": "$(service.port[http])"}])),
        "spec.replicaSpecs[0].template.spec.containers[0].env[0].value: '$(service.port[http])' is not allowed",
    ),
    "a variable that is none": (
        generic(written("$(service.worker.host)"), **SERVICE),
        f"{ARGS}: '$(service.worker.host)' is not allowed; must be $(replicas[TYPE])",
    ),
    "the same port name twice": (
        generic(service={"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}),
        "spec.service.ports[1].name: 'a' is not allowed",
    ),
    "a port that leads elsewhere": (
        generic(service={"ports": [{"port": 80, "targetPort": 8080}]}),
        (
            "spec.service.ports[0].targetPort: 8080 is not allowed; "
            "must equal port, 80, or be omitted: replicas are reached directly"
        ),
    ),
}


@pytest.mark.parametrize(("job", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_job_is_refused_for(job, fault):
    assert one_fault(job).startswith(fault)


def test_rules_are_required():
    job = generic()
    del job["spec"]["successRules"], job["spec"]["failureRules"]

    assert [fault.path for fault in registry.faults(job)] == ["spec.successRules", "spec.failureRules"]


def test_a_port_may_lead_to_itself():
    assert registry.faults(generic(service={"ports": [{"port": 80, "targetPort": "80"}]})) == ()
