"""What earlier runs left in the kernel's tree is swept, and nothing that is only just being made."""

from paceline.host.resources import YOUNG_SECONDS, remove_stale_cgroups
from paceline.node.runtime.cgroup_limits import Cgroups


def test_a_group_that_a_container_is_about_to_enter_is_not_swept(tmp_path):
    group = tmp_path / "uid.main.0"
    group.mkdir()
    made = group.stat().st_mtime
    cgroups = Cgroups(version=2, cpu=tmp_path, memory=tmp_path, pids=tmp_path)

    remove_stale_cgroups(cgroups, made + YOUNG_SECONDS - 1)
    assert group.exists()

    remove_stale_cgroups(cgroups, made + YOUNG_SECONDS + 1)
    assert not group.exists()
