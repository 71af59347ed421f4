"""The sandbox as options of bubblewrap: what is seen, who it is, in which order."""

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.host.effects import RealFiles
from paceline.node.host_info import CannotStart, User
from paceline.node.images import Environment
from paceline.node.lifecycle.starter import not_found
from paceline.node.runtime.confinement import capabilities_of, user_of
from paceline.node.runtime.sandbox import (
    ContainerConfig,
    MountParent,
    command,
    group_text,
    mount_parents_of,
    options,
    passwd_text,
)
from paceline.node.volumes.volumes import PodVolume, VolumeMount
from paceline.testing.sim.effects import SimFiles
from tests.unit.node.pods import HOST, container, pod

PLAIN = ContainerConfig(
    hostname="demo-0",
    environment=Environment(name="/env", path=("/env/bin", "/usr/bin"), folders=("/env", "/usr/lib/python3", "/a/b")),
    env=(("LR", "0.1"),),
    command=("python", "train.py"),
    mounts=(),
    hosts=Path("/agent/hosts/1"),
    message=Path("/agent/message"),
)
UNPRIVILEGED = replace(HOST, is_root=False, uid=1000, gid=1000)


def words(config, host=HOST):
    return " ".join(each if isinstance(each, str) else spelt(**each) for each in options(config, host))


def spelt(place, *, text=None, source=None, **part):
    if part:
        return f"{part['bind']} {part['root']} by handle {part['subPath']} {place}"
    return f"{source} as {place}" if text is None else f"{text!r} as {place}"


def test_the_root_is_empty_and_writable_so_that_a_mount_can_be_anywhere():
    assert options(PLAIN, HOST)[:2] == ("--tmpfs", "/")
    assert "--ro-bind / /" not in words(PLAIN)


def test_programs_of_the_machine_are_seen_but_cannot_be_changed():
    assert "--ro-bind /usr /usr" in words(PLAIN)
    assert "--symlink usr/bin /bin" in words(PLAIN)


def test_the_environment_is_seen_once_and_its_parents_are_open_to_every_user():
    said = words(PLAIN)

    assert "--ro-bind /env /env" in said
    assert "--dir /a --ro-bind /a/b /a/b" in said
    assert "/usr/lib/python3" not in said


def test_nothing_is_shared_that_need_not_be():
    said = words(PLAIN)

    for word in ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname demo-0", "--die-with-parent"):
        assert word in said
    assert "--new-session" in said


def test_root_keeps_only_the_capabilities_it_was_given_and_others_have_none_to_drop():
    given = replace(PLAIN, capabilities=("CAP_CHOWN",))

    assert "--cap-drop ALL" in words(PLAIN)
    assert "--cap-add" not in words(PLAIN)
    assert "--cap-drop ALL --cap-add CAP_CHOWN" in words(given)
    assert "--cap" not in words(given, UNPRIVILEGED)


def test_another_user_is_become_inside_and_keeps_nothing_of_what_that_takes():
    config = replace(PLAIN, user=User(uid=1001, gid=7), capabilities=("CAP_CHOWN",))

    assert words(config).count("--cap-add") == 4
    assert "--cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SETPCAP" in words(config)
    assert command(config, HOST) == (
        *("/usr/bin/setpriv", "--reuid", "1001", "--regid", "7", "--clear-groups"),
        *("--bounding-set", "-all,+chown", "--"),
        *("python", "train.py"),
    )
    assert command(PLAIN, HOST) == ("python", "train.py")


@pytest.mark.parametrize(
    ("context", "has", "lacks"),
    [
        ({}, {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SETUID"}, {"CAP_SYS_ADMIN", "CAP_MKNOD"}),
        ({"capabilities": {"drop": ["CHOWN"]}}, {"CAP_SETUID"}, {"CAP_CHOWN"}),
        ({"capabilities": {"drop": ["ALL"]}}, set(), {"CAP_CHOWN", "CAP_SETUID"}),
        ({"capabilities": {"drop": ["ALL"], "add": ["cap_chown"]}}, {"CAP_CHOWN"}, {"CAP_SETUID"}),
        ({"capabilities": {"add": ["IPC_LOCK"]}}, {"CAP_IPC_LOCK", "CAP_CHOWN"}, {"CAP_SYS_ADMIN"}),
        ({"capabilities": {"add": ["ALL"]}}, {"ALL"}, {"CAP_CHOWN"}),
        ({"privileged": True}, {"ALL"}, {"CAP_CHOWN"}),
    ],
)
def test_root_may_do_what_runtimes_allow_less_and_more_as_it_says(context, has, lacks):
    found = set(capabilities_of(container(securityContext=context)))

    assert has <= found
    assert not lacks & found


def test_a_container_finds_its_limits_where_programs_look():
    config = replace(PLAIN, views=(("/groups/cpu/pod", "/sys/fs/cgroup/cpu"),))
    said = words(config)

    assert "--ro-bind /groups/cpu/pod /sys/fs/cgroup/cpu" in said
    assert said.index("--ro-bind-try /sys /sys") < said.index("/groups/cpu/pod")


def variables(config, host=HOST):
    said = options(config, host)
    start = said.index("--clearenv")
    assert "--setenv" not in said[:start]
    return dict(zip(said[start + 2 :: 3], said[start + 3 :: 3], strict=True))


def test_the_environment_holds_what_is_said_and_nothing_else():
    assert variables(PLAIN) == {
        "PATH": "/env/bin:/usr/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "HOSTNAME": "demo-0",
        "LR": "0.1",
    }


def test_the_containers_own_variables_win():
    found = variables(replace(PLAIN, env=(("PATH", "/mine"), ("HOME", "/h"))))

    assert (found["PATH"], found["HOME"]) == ("/mine", "/h")


def test_a_user_without_a_home_gets_one_to_write_to():
    assert variables(replace(PLAIN, user=User(uid=5, gid=5)))["HOME"] == "/tmp"
    assert variables(PLAIN, UNPRIVILEGED)["HOME"] == "/tmp"


def test_mounts_lie_over_everything_else_and_memory_may_have_a_size():
    mounts = (
        VolumeMount(target="/dev/shm", volume=PodVolume(source=None, size=1024)),
        VolumeMount(target="/data/in", volume=PodVolume(source=Path("/disk")), sub_path="a", read_only=True),
        VolumeMount(target="/tmp", volume=PodVolume(source=Path("/scratch"))),
    )
    said = words(replace(PLAIN, mounts=mounts))

    assert "--perms 1777 --size 1024 --tmpfs /dev/shm" in said
    assert "--dir /data --ro-bind /disk by handle a /data/in" in said
    assert said.index("--bind /scratch /tmp") > said.index("--tmpfs /tmp")


def test_the_way_to_a_place_in_a_volume_is_looked_at_before_anything_is_made_there():
    mounts = (
        VolumeMount(target="/data", volume=PodVolume(source=Path("/disk")), name="d", sub_path="a"),
        VolumeMount(target="/data/x/y", volume=PodVolume(source=Path("/other"))),
        VolumeMount(target="/memory", volume=PodVolume(source=None)),
        VolumeMount(target="/memory/z", volume=PodVolume(source=Path("/other"))),
    )
    made = options(replace(PLAIN, mounts=mounts, working_dir="/data/x/w"), HOST)
    looks = {word["place"]: word for word in made if isinstance(word, dict) and "inside" in word}

    assert {place: look["inside"] for place, look in looks.items()} == {"/data/x/y": "x/y", "/data/x/w": "x/w"}
    assert looks["/data/x/y"].items() >= {"root": "/disk", "subPath": "a", "volume": "d"}.items()
    assert made.index(looks["/data/x/y"]) < made.index("/data/x")
    assert made.index(looks["/data/x/w"]) < made.index("/data/x/w")


def test_a_working_directory_is_made_and_entered():
    assert "--dir /work --chdir /work" in words(replace(PLAIN, working_dir="/work"))
    assert words(PLAIN).count("--chdir /") == 1


def test_names_and_last_words_have_their_files():
    said = words(PLAIN)

    assert "--ro-bind /agent/hosts/1 /etc/hosts" in said
    assert f"{passwd_text(User(uid=0, gid=0))!r} as /etc/passwd" in said
    assert "'demo-0\\n' as /etc/hostname" in said
    assert "/etc/services as /etc/services" in said
    assert "--bind /agent/message /dev/termination-log" in said
    assert "/etc/shadow" not in said


def as_user(host=HOST, *, of_pod=None, of_container=None):
    subject = pod(container(securityContext=of_container or {}), securityContext=of_pod or {})
    return user_of(subject, subject["spec"]["containers"][0], host)


def test_the_user_is_the_containers_choice_before_the_pods():
    assert as_user() is None
    assert as_user(of_pod={"runAsUser": 1, "runAsGroup": 2}) == User(uid=1, gid=2)
    assert as_user(of_pod={"runAsUser": 1}, of_container={"runAsUser": 3}) == User(uid=3, gid=0)


NOT_ROOT = {
    "nothing said": ({"runAsNonRoot": True}, "container has runAsNonRoot and image will run as root"),
    "root said": ({"runAsNonRoot": True, "runAsUser": 0}, "container's runAsUser breaks non-root policy"),
}


@pytest.mark.parametrize(("context", "said"), NOT_ROOT.values(), ids=NOT_ROOT)
def test_who_must_not_be_root_is_not_started_as_root(context, said):
    with pytest.raises(CannotStart, match=said) as caught:
        as_user(of_pod=context)
    assert caught.value.reason == "CreateContainerConfigError"
    assert as_user(of_pod={**context, "runAsUser": 9}) == User(uid=9, gid=0)


def test_an_agent_that_is_not_root_cannot_become_another_user_and_says_so():
    assert as_user(UNPRIVILEGED, of_pod={"runAsUser": 1000}) is None
    with pytest.raises(CannotStart, match="need a node agent that runs as root; this one runs as 1000:1000"):
        as_user(UNPRIVILEGED, of_pod={"runAsUser": 1})


def test_the_container_finds_itself_in_passwd_and_group():
    assert "user:x:1001:7:" in passwd_text(User(uid=1001, gid=7))
    assert "user:x:7:" in group_text(User(uid=1001, gid=7))
    assert passwd_text(User(uid=0, gid=0)).count("root") == 3


def test_a_missing_program_is_said_with_the_way_to_get_it():
    said = not_found("torchrun", environment="host", image="pytorch/pytorch:2")

    assert said.startswith("torchrun: not found in environment host; install PyTorch there or map the image")
    assert "--image 'pytorch/pytorch:2=FOLDER'" in said
    assert "install it there" in not_found("/usr/bin/foo", environment="/env", image="x")


def test_an_environment_below_tmp_is_not_covered_by_the_scratch_memory() -> None:
    environment = replace(PLAIN.environment, folders=("/tmp/clone/.venv",))
    said = options(replace(PLAIN, environment=environment), HOST)

    bound = said.index("/tmp/clone/.venv")
    assert said[bound - 1] == "--ro-bind"
    assert bound > said.index("/tmp")


def test_a_pods_groups_are_its_containers_groups():
    found = as_user(of_pod={"fsGroup": 7, "supplementalGroups": [8, 7]})

    assert found == User(uid=0, gid=0, groups=(7, 8))
    assert command(replace(PLAIN, user=found), HOST)[5:9] == ("--groups", "7,8", "--bounding-set", "-all")
    assert as_user(UNPRIVILEGED, of_pod={"fsGroup": 7}) is None


def test_a_place_that_is_missing_in_a_folder_of_the_machine_is_made_between_what_is_there():
    files = SimFiles()
    for name in ("/usr/lib", "/usr/bin"):
        files.make_folder(Path(name))

    assert mount_parents_of(["/usr/share/data", "/usr/lib", "/data"], ["/usr"], files) == (
        MountParent(folder="/usr", names=("bin", "lib")),
    )
    said = words(replace(PLAIN, mount_parents=(MountParent(folder="/usr", names=("bin", "lib")),)))
    assert "--tmpfs /usr --ro-bind-try /usr/bin /usr/bin --ro-bind-try /usr/lib /usr/lib" in said


def test_a_missing_place_shows_no_folder_of_the_machine_that_is_not_shown_anyway(tmp_path):
    opt = tmp_path / "opt"
    for name in ("opt/home/keys", "opt/home/cache/env/lib", "opt/other", "secret"):
        (tmp_path / name).mkdir(parents=True)
    (opt / "link").symlink_to("../secret")
    private, closed = [str(opt / "home")], [str(opt), str(opt / "home/cache/env")]

    def opened(place):
        return [each.folder for each in mount_parents_of([f"{opt}/{place}"], closed, RealFiles(), private=private)]

    assert opened("../secret/new") == opened("link/new") == []
    assert opened("home/keys/new") == opened("home/new") == opened("home/cache/new") == []
    assert opened("home/cache/env/lib/new") == [f"{opt}/home/cache/env/lib"]
    assert opened("other/new") == [f"{opt}/other"]


def test_a_root_that_must_not_change_is_closed_after_the_last_mount():
    mount = VolumeMount(target="/tmp", volume=PodVolume(source=Path("/x")))
    said = words(replace(PLAIN, is_read_only=True))

    assert "--remount-ro /tmp --remount-ro /" in said
    assert "--remount-ro /tmp" not in words(replace(PLAIN, is_read_only=True, mounts=(mount,)))
    assert "--remount-ro" not in words(PLAIN)
