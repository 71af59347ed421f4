"""The cluster's own folder stays its own: below /opt, open to others before, or named by a hostPath."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.support.shell_pods import make_pod, run_pod, shell

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not Path("/opt").is_dir(), reason="only root writes below /opt")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    """A cluster below a folder that every container sees, and that somebody made for everybody."""
    home = Path(tempfile.mkdtemp(prefix="pl-", dir="/opt"))
    home.chmod(0o755)
    with embedded(home=home) as running:
        yield running


def test_a_folder_that_was_open_to_others_is_closed(cluster: Embedded) -> None:
    assert stat.S_IMODE(cluster.home.stat().st_mode) == 0o700
    assert stat.S_IMODE(cluster.settings.log.stat().st_mode) == 0o600


def test_containers_do_not_see_it_where_they_see_what_is_around_it(cluster: Embedded) -> None:
    """Also when a mount has the folders around it shown one by one."""
    script = f"ls -A {cluster.home}; cat {cluster.kubeconfig} {cluster.settings.agent_socket} 2>&1 | grep -c 'No such'"
    inside = {"volumeMounts": [{"name": "scratch", "mountPath": "/opt/not-there/yet"}]}

    assert run_pod(cluster, "plain", shell(script)) == ["2"]
    assert run_pod(cluster, "opened", shell(script, **inside), volumes=[{"name": "scratch", "emptyDir": {}}]) == ["2"]


def test_a_host_path_into_it_is_refused_and_said(cluster: Embedded, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(cluster.home / "keys")
    mounted = {"volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}
    make_pod(
        cluster,
        "thief",
        shell("ls /keys", **mounted),
        volumes=[{"name": "keys", "hostPath": {"path": f"{tmp_path}/link"}}],
    )

    def said() -> bool:
        fields = "involvedObject.name=thief,type=Warning"
        events = cluster.kubectl("get", "events", "--field-selector", fields, "-o", "jsonpath={.items[*].message}").out
        return "is inside of the cluster's own folder" in events

    wait_until("it is said", said)
