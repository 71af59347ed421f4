"""Limits are written as each generation of control groups wants them."""

from decimal import Decimal
from pathlib import Path

import pytest

from paceline.node.runtime.cgroup_limits import CgroupLimits, Cgroups, intent_of, limits_of, views_of

OLD = Cgroups(version=1, cpu=Path("/cg/cpu"), memory=Path("/cg/memory"), pids=Path("/cg/pids"))
NEW = Cgroups(version=2, cpu=Path("/cg"), memory=Path("/cg"), pids=Path("/cg"))


def written(cgroups, **limits):
    intent = intent_of(cgroups, CgroupLimits(**limits), name="u1.main.2")
    return dict(intent["settings"])


SETTINGS = {
    "cpus, first generation": (
        OLD,
        {"cpus": Decimal("1.5")},
        {
            "/cg/cpu/u1.main.2/cpu.cfs_period_us": "100000",
            "/cg/cpu/u1.main.2/cpu.cfs_quota_us": "150000",
        },
    ),
    "cpus, second generation": (NEW, {"cpus": Decimal(2)}, {"/cg/u1.main.2/cpu.max": "200000 100000"}),
    "a sliver of a cpu is the least the kernel takes": (
        NEW,
        {"cpus": Decimal("0.001")},
        {"/cg/u1.main.2/cpu.max": "1000 100000"},
    ),
    "memory, first generation": (
        OLD,
        {"memory_bytes": 1024},
        {
            "/cg/memory/u1.main.2/memory.limit_in_bytes": "1024",
            "/cg/memory/u1.main.2/memory.memsw.limit_in_bytes": "1024",
        },
    ),
    "memory, second generation": (
        NEW,
        {"memory_bytes": 1024},
        {
            "/cg/u1.main.2/memory.max": "1024",
            "/cg/u1.main.2/memory.swap.max": "0",
            "/cg/u1.main.2/memory.oom.group": "1",
        },
    ),
    "processes": (OLD, {"pids": 9}, {"/cg/pids/u1.main.2/pids.max": "9"}),
    "shares, first generation": (OLD, {"shares": 512}, {"/cg/cpu/u1.main.2/cpu.shares": "512"}),
    "shares, second generation": (NEW, {"shares": 1024}, {"/cg/u1.main.2/cpu.weight": "39"}),
}


@pytest.mark.parametrize(("cgroups", "limits", "settings"), SETTINGS.values(), ids=SETTINGS)
def test_every_limit_is_written_where_the_kernel_reads_it(cgroups, limits, settings):
    assert written(cgroups, **limits) == settings


def test_a_container_without_limits_has_a_group_that_counts_its_memory_and_processes():
    intent = intent_of(OLD, limits_of({}, pids=9), name="u1.main.0")

    assert intent["folders"] == ["/cg/memory/u1.main.0", "/cg/cpu/u1.main.0", "/cg/pids/u1.main.0"]
    assert intent["settings"] == [["/cg/cpu/u1.main.0/cpu.shares", "256"], ["/cg/pids/u1.main.0/pids.max", "9"]]
    # Programs have nothing to look up there.
    assert views_of(OLD, intent) == views_of(NEW, intent) == ()


def test_a_shim_visits_a_group_only_where_that_is_cheap_and_does_not_end_it():
    visited = intent_of(OLD, CgroupLimits(pids=9, memory_bytes=2**30), name="u1.main.0")
    tight = intent_of(OLD, CgroupLimits(memory_bytes=2**20), name="u1.main.0")
    new = intent_of(NEW, CgroupLimits(pids=9), name="u1.main.0")

    assert (visited["homes"], visited["procs"]) == (["/cg", "/cg"], "tasks")
    assert tight["homes"] == []
    assert (new["homes"], new["procs"]) == ([], "cgroup.procs")


def test_memory_is_watched_also_when_only_cpus_are_limited():
    intent = intent_of(OLD, CgroupLimits(cpus=Decimal(1)), name="u1.main.0")

    assert intent["folders"] == ["/cg/memory/u1.main.0", "/cg/cpu/u1.main.0"]
    assert intent["kills"] == "/cg/memory/u1.main.0/memory.oom_control"


def test_limits_are_read_from_the_container_and_requests_are_none():
    container = {"resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": 1}}}

    assert limits_of(container) == CgroupLimits(cpus=Decimal("0.5"), memory_bytes=2**30, shares=1024)
    assert limits_of({"resources": {"requests": {"cpu": 1}}}) == CgroupLimits(shares=1024)
    assert limits_of({"resources": {"limits": {"cpu": "500m"}}}).shares == 512
    assert limits_of({}).shares == 256


def test_programs_find_their_own_limits_where_they_look():
    folders = ["/sys/fs/cgroup/cpu/paceline/a.main.0", "/sys/fs/cgroup/memory/paceline/a.main.0"]
    root = Path("/sys/fs/cgroup")
    old = Cgroups(version=1, cpu=root / "cpu/paceline", memory=root / "memory/paceline", pids=root / "pids/paceline")
    new = Cgroups(version=2, cpu=root / "paceline", memory=root / "paceline", pids=root / "paceline")

    counted = [*folders, "/sys/fs/cgroup/pids/paceline/a.main.0"]
    limited = [["/sys/fs/cgroup/cpu/paceline/a.main.0/cpu.max", "1"]]
    assert views_of(
        old, {"folders": counted, "settings": [*limited, ["/sys/fs/cgroup/pids/paceline/a.main.0/pids.max", "9"]]}
    ) == (
        (folders[0], "/sys/fs/cgroup/cpu"),
        (folders[1], "/sys/fs/cgroup/memory"),
    )
    assert views_of(new, {"folders": ["/sys/fs/cgroup/paceline/a.main.0"], "settings": limited}) == (
        ("/sys/fs/cgroup/paceline/a.main.0", "/sys/fs/cgroup"),
    )
    assert views_of(None, None) == views_of(old, None) == ()
