"""What a container may not do: the filter decides as it should, private folders are covered, classes rank in an OOM."""

import errno
import struct
from dataclasses import replace

import pytest

from paceline.node.host_info import CannotStart, Host
from paceline.node.images import Environment
from paceline.node.lifecycle.starter import paths_of
from paceline.node.runtime import seccomp
from paceline.node.runtime.confinement import (
    BEST_EFFORT_SCORE,
    DEFAULT_CAPABILITIES,
    GUARANTEED_SCORE,
    READ_ONLY,
    Confinement,
    confinement_of,
    filter_of,
    oom_score_of,
    path_in_sandbox,
)
from paceline.node.runtime.sandbox import options, process_of
from tests.unit.node.test_sandbox import PLAIN

HOST = Host(
    name="n",
    is_root=True,
    uid=0,
    gid=0,
    cpus=2,
    memory_bytes=1000 << 20,
    facts=(("architecture", "amd64"),),
    folders=("/usr", "/opt"),
    has_seccomp=True,
    read_only_paths=("/proc/sys",),
    masked_files=("/proc/keys",),
    masked_folders=("/proc/acpi",),
    private_folders=("/opt/paceline", "/opt/cache"),
)
X86, ARM = 0xC000003E, 0xC00000B7
ALLOWED, DENIED, KILLED = "allowed", errno.EPERM, "killed"


def decide(program, number, *arguments, architecture=X86):
    """Run a filter as the kernel does."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    place = value = 0
    while True:
        code, if_true, if_false, k = struct.unpack_from("<HBBI", program, place * 8)
        place += 1
        if code == seccomp.LOAD:
            (value,) = struct.unpack_from("<I", data, k)
        elif code == seccomp.JUMP:
            place += k
        elif code == seccomp.RETURN:
            return {seccomp.ALLOW: ALLOWED, seccomp.KILL: KILLED}.get(k, k & 0xFFFF)
        else:
            tests = {seccomp.IF_EQUAL: value == k, seccomp.IF_AT_LEAST: value >= k, seccomp.IF_ANY_BIT: value & k}
            place += if_true if tests[code] else if_false


USERS, THREAD = 0x10000000, 0x003D0F00
CASES = {
    "reading": ((0,), ALLOWED),
    "ptrace, as in runtimes": ((101,), ALLOWED),
    "mount": ((165,), DENIED),
    "keyctl": ((250,), DENIED),
    "io_uring_setup": ((425,), DENIED),
    "clone3": ((435,), errno.ENOSYS),
    "a thread": ((56, THREAD), ALLOWED),
    "a user namespace": ((56, USERS | 17), DENIED),
    "unshare of files": ((272, 0x400), ALLOWED),
    "unshare of users": ((272, USERS), DENIED),
    "an ioctl": ((16, 0, 0x5401), ALLOWED),
    "typing for others": ((16, 0, 0x5412), DENIED),
    # The kernel reads 32 bits of it, so must the filter.
    "typing for others in disguise": ((16, 0, 0x5412 | 1 << 32), DENIED),
    "a stream": ((41, 2), ALLOWED),
    "a line to the hypervisor": ((41, 40), DENIED),
    "the usual personality": ((135, 0), ALLOWED),
    "asking for it": ((135, 0xFFFFFFFF), ALLOWED),
    "another personality": ((135, 0x0400000), DENIED),
    "x32": ((0x40000000 + 39,), DENIED),
}


@pytest.mark.parametrize(("call", "answer"), CASES.values(), ids=CASES)
def test_the_filter_answers_each_call_as_it_should(call, answer):
    assert decide(seccomp.filter_for("amd64", DEFAULT_CAPABILITIES), *call) == answer


@pytest.mark.parametrize(("architecture", "column"), [("amd64", 0), ("arm64", 1)])
def test_every_denied_call_is_denied_and_no_other_for_its_number(architecture, column):
    program = seccomp.filter_for(architecture, ())
    denied = {row[column] for row in seccomp.DENIED.values()} - {None}
    kernel_name, _ = seccomp.MACHINES[architecture]

    found = {number for number in range(600) if decide(program, number, architecture=kernel_name) == DENIED}

    assert found == denied


def test_programs_of_another_architecture_are_killed():
    assert decide(seccomp.filter_for("amd64", ()), 20, architecture=0x40000003) == KILLED
    assert decide(seccomp.filter_for("arm64", ()), 40, architecture=ARM) == DENIED
    assert decide(seccomp.filter_for("arm64", ()), 63, architecture=ARM) == ALLOWED


def test_a_capability_opens_what_is_of_use_with_it_only():
    admin = seccomp.filter_for("amd64", ("CAP_SYS_ADMIN",))

    assert (decide(admin, 165), decide(admin, 272, USERS), decide(admin, 435)) == (ALLOWED, ALLOWED, ALLOWED)
    assert (decide(admin, 250), decide(admin, 175), decide(admin, 425)) == (DENIED, DENIED, DENIED)
    assert decide(seccomp.filter_for("amd64", ("CAP_SYS_TIME",)), 227) == ALLOWED
    assert decide(seccomp.filter_for("amd64", ("ALL",)), 175) == ALLOWED


def test_there_is_no_filter_where_none_can_be():
    assert seccomp.filter_for("riscv64", ()) == b""
    assert filter_of(Confinement(), (), replace(HOST, has_seccomp=False)) == ""


def pod(container=None, **context):
    return {"metadata": {}, "spec": {"securityContext": context, "containers": [container or {"name": "a"}]}}


def context(**fields):
    return {"name": "a", "securityContext": fields}


UNCONFINED = {"type": "Unconfined"}
CONFINED = {
    "nothing said": ({"name": "a"}, {}, (True, True)),
    "the default": (context(seccompProfile={"type": "RuntimeDefault"}), {}, (True, True)),
    "none for the container": (context(seccompProfile=UNCONFINED), {}, (False, True)),
    "none for the pod": ({"name": "a"}, {"seccompProfile": UNCONFINED}, (False, True)),
    "the container goes first": (
        context(seccompProfile={"type": "RuntimeDefault"}),
        {"seccompProfile": UNCONFINED},
        (True, True),
    ),
    "privileged": (context(privileged=True), {}, (False, False)),
    "unmasked": (context(procMount="Unmasked"), {}, (True, False)),
}


@pytest.mark.parametrize(("container", "pods", "has"), CONFINED.values(), ids=CONFINED)
def test_a_security_context_lifts_what_it_names(container, pods, has):
    found = confinement_of(pod(container, **pods), container, HOST)

    assert (found.has_filter, found.has_masks) == has


def test_profiles_of_files_are_not_offered_and_that_is_said():
    container = context(seccompProfile={"type": "Localhost", "localhostProfile": "a.json"})

    with pytest.raises(CannotStart, match=r"Localhost \(a.json\) is not supported; use RuntimeDefault"):
        confinement_of(pod(container), container, HOST)


def resources(**amounts):
    return {"name": "a", "resources": amounts}


def test_who_asked_for_memory_is_ended_after_who_did_not():
    best, some = resources(), resources(requests={"memory": "500Mi"})
    all_of_it = resources(limits={"memory": "1Mi", "cpu": 1}, requests={"memory": "1Mi", "cpu": 1})
    huge = resources(requests={"memory": "5Gi"})

    assert oom_score_of(pod(best), best, HOST) == BEST_EFFORT_SCORE
    assert oom_score_of(pod(some), some, HOST) == 500
    assert oom_score_of(pod(huge), huge, HOST) == 3
    assert oom_score_of(pod(all_of_it), all_of_it, HOST) == GUARANTEED_SCORE


def words(launch, host=HOST):
    return " ".join(word if isinstance(word, str) else f"<{','.join(word)}>" for word in options(launch, host))


def test_proc_is_covered_unless_a_container_is_privileged():
    covered = words(PLAIN)

    assert "--ro-bind /proc/sys /proc/sys --dev-bind /dev/null /proc/keys --tmpfs /proc/acpi <filter>" in covered
    assert covered.index("--proc /proc") < covered.index("--ro-bind /proc/sys")
    lifted = words(replace(PLAIN, confinement=Confinement(has_filter=False, has_masks=False)))
    assert "/proc/sys" not in lifted
    assert "<filter>" not in lifted


def test_private_folders_are_covered_and_the_environment_in_them_is_shown_again():
    environment = Environment(name="e", path=(), folders=("/opt/cache/envs/torch",))
    said = words(replace(PLAIN, environment=environment))

    assert said.index("--ro-bind /opt /opt") < said.index("--tmpfs /opt/paceline")
    assert said.index("--tmpfs /opt/cache") < said.index("--ro-bind /opt/cache/envs/torch /opt/cache/envs/torch")


def test_nobody_in_a_container_can_have_more_than_it_was_given():
    assert process_of(PLAIN, HOST)["capabilities"] == PLAIN.capabilities
    assert process_of(replace(PLAIN, capabilities=("ALL",)), HOST)["capabilities"] is None
    assert process_of(PLAIN, replace(HOST, is_root=False, pids_limit=9))["processes"] == 9


@pytest.mark.parametrize(
    ("path", "place"),
    [("/data", "/data"), ("data/", "/data"), ("/../oldroot/etc", "/oldroot/etc"), ("//a/./../b", "/b"), ("/", "/")],
)
def test_a_path_of_a_container_does_not_lead_above_its_root(path, place):
    assert path_in_sandbox(path, "mountPath") == place


@pytest.mark.parametrize(
    "path",
    ["/proc", "/proc/self/root/oldroot/etc", "/x/../proc/1/cwd", "//proc/sys", "/dev/fd/3", "/dev/stdin", "/a\0b"],
)
def test_a_path_of_a_container_leads_through_no_link_of_the_kernel(path):
    with pytest.raises(CannotStart, match=r"workingDir .* must not"):
        path_in_sandbox(path, "workingDir")
    for field in ("workingDir", "terminationMessagePath"):
        with pytest.raises(CannotStart, match=field):
            paths_of({field: path})


def test_paths_of_a_container_have_their_defaults():
    assert paths_of({}) == ("", "/dev/termination-log")
    assert paths_of({"workingDir": "/a/../b", "terminationMessagePath": "/../c"}) == ("/b", "/c")


@pytest.mark.parametrize("path", ["/proc/sys", "/proc/irq", "/proc/pressure", "/proc/dynamic_debug"])
def test_what_root_without_capabilities_could_write_to_is_read_only(path):
    assert path in READ_ONLY
