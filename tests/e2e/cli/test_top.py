"""What pods and nodes use, as `kubectl top` shows it."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, processes_with, wait_until
from tests.e2e.support.manifests import pod, pytorch, text

pytestmark = pytest.mark.slow

BUSY = "data = b'x' * (64 * 2**20)\nwhile True: pass"
IDLE = "import signal; signal.pause()"
# Not those of the job that another test runs.
MINE = ("-l", "app in (busy,idle)")


@pytest.fixture(scope="module")
def home(cluster: Embedded) -> Embedded:
    """A cluster with a busy pod and an idle one, both measured."""
    busy = {"name": "main", "command": ["python", "-c", BUSY]}
    idle = {"name": "side", "command": ["python", "-c", IDLE]}
    both = text(pod("busy", busy, idle, app="busy"), pod("idle", idle, app="idle"))
    made = cluster.kubectl("create", "-f", "-", stdin=both)
    assert made.code == 0, made.err
    wait_until("all are measured", lambda: len(rows(cluster, "pods", "--containers")) == 3)
    # The first look may have been at a program that was just starting.
    wait_until("the busy one has its memory", lambda: number(rows(cluster, "pod", "busy")[0][2]) > 64)
    return cluster


def rows(home: Embedded, *words: str) -> list[list[str]]:
    return [line.split() for line in home.kubectl("top", *words, "--no-headers").out.splitlines()]


def number(text: str) -> int:
    return int("".join(each for each in text if each.isdigit()))


def test_pods_are_shown_with_the_busy_one_first(home: Embedded) -> None:
    wait_until("the busy one is seen to be", lambda: number(rows(home, "pod", "busy")[0][1]) > 100)
    shown = rows(home, "pods", "--sort-by=cpu", *MINE)

    assert [row[0] for row in shown] == ["busy", "idle"]
    assert number(shown[0][2]) > 64
    assert 0 < number(shown[1][2]) < 64


def test_what_is_shown_is_what_the_kernel_says(home: Embedded) -> None:
    """T-10, X-17: memory, within ten percent."""
    (main,) = [row for row in rows(home, "pods", "--containers", *MINE) if row[:2] == ["busy", "main"]]
    resident = max(rss(pid) for pid, _ in processes_with(BUSY))

    assert number(main[3]) == pytest.approx(resident / 2**20, rel=0.1)


def rss(pid: int) -> int:
    """The resident memory of a Python program; none when it is another one, or has ended."""
    try:
        is_python = "python" in Path(f"/proc/{pid}/comm").read_text()
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE") if is_python else 0


def summary_of(home: Embedded, name: str) -> dict[str, Any]:
    """Read what the node tells of a pod, in a kubelet's words."""
    node = home.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}").out
    told = json.loads(home.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/stats/summary").out)
    found = [each for each in told["pods"] if each["podRef"]["name"] == name]
    return dict(found[0]) if found else {}


def between(home: Embedded, name: str, kernel: Callable[[], int], told: Callable[[dict[str, Any]], int]) -> None:
    """See that what is told of a pod lies between what the kernel says before and after, give or take ten percent."""
    before = kernel()
    known = summary_of(home, name)["containers"][0]["cpu"]["time"]

    def newer() -> dict[str, Any]:
        now = summary_of(home, name)
        return now if now["containers"][0]["cpu"]["time"] > known else {}

    # The look after the next one was begun after the first number was read.
    wait_until("it is measured again", newer)
    known = summary_of(home, name)["containers"][0]["cpu"]["time"]
    value = told(wait_until("and once more", newer))
    after = kernel()

    assert 0 < before * 0.9 <= value <= after * 1.1


def test_x17_processor_time_is_what_the_kernel_says(home: Embedded) -> None:
    """T-10: the scheduler's own nanoseconds, which are not the ticks that we read."""
    words = ("exec", "busy", "-c", "main", "--", "sh", "-c", "cat /proc/[0-9]*/schedstat")

    def scheduled() -> int:
        return sum(int(line.split()[0]) for line in home.kubectl(*words).out.splitlines())

    between(home, "busy", scheduled, lambda told: main_of(told)["cpu"]["usageCoreNanoSeconds"])


def main_of(told: dict[str, Any]) -> dict[str, Any]:
    return next(each for each in told["containers"] if each["name"] == "main")


WRITES = (
    "import os, signal\n"
    "file = os.open('/scratch/made', os.O_CREAT | os.O_WRONLY)\n"
    "os.write(file, b'x' * (32 * 2**20)); os.fsync(file); print('written', flush=True); signal.pause()"
)
SERVES = (
    "import http.server, os\n"
    "open('/scratch/made', 'wb').write(b'x' * (4 * 2**20)); os.chdir('/scratch')\n"
    "http.server.ThreadingHTTPServer(('', 8000), http.server.SimpleHTTPRequestHandler).serve_forever()"
)


def with_scratch(name: str, script: str, scratch: dict[str, Any]) -> dict[str, Any]:
    mount = [{"name": "scratch", "mountPath": "/scratch"}]
    made = pod(name, {"name": "main", "command": ["python", "-c", script], "volumeMounts": mount})
    made["spec"]["volumes"] = [{"name": "scratch", **scratch}]
    return made


def test_x17_what_is_written_is_what_the_kernel_says(home: Embedded) -> None:
    """T-10: the bytes that a program has written, and waited for."""
    # /tmp may be in memory, and no disk then hears of what is written there.
    with TemporaryDirectory(dir="/var/tmp") as disk:
        writes = with_scratch("writes", WRITES, {"hostPath": {"path": disk}})
        assert home.kubectl("create", "-f", "-", stdin=text(writes)).code == 0
        wait_until("it has written", lambda: "written" in home.kubectl("logs", "writes").out)
        wait_until("it is measured", lambda: summary_of(home, "writes"))

        between(home, "writes", lambda: 32 * 2**20, lambda told: main_of(told)["disk"]["writeBytes"])
        assert home.kubectl("delete", "pod", "writes", "--now").code == 0


def test_x17_what_is_sent_is_what_the_kernel_says(home: Embedded) -> None:
    """T-10: the counter of the pod's own interface, as the pod itself sees it."""
    assert home.kubectl("create", "-f", "-", stdin=text(with_scratch("serves", SERVES, {"emptyDir": {}}))).code == 0
    path = "/api/v1/namespaces/default/pods/serves:8000/proxy/made"
    wait_until("it serves", lambda: len(home.kubectl("get", "--raw", path).out) == 4 * 2**20)
    wait_until("it is measured", lambda: summary_of(home, "serves"))

    def sent() -> int:
        lines = home.kubectl("exec", "serves", "--", "cat", "/proc/net/dev").out.splitlines()[2:]
        (count,) = [line.partition(":")[2].split()[8] for line in lines if not line.strip().startswith("lo:")]
        return int(count)

    assert sent() > 4 * 2**20
    between(home, "serves", sent, lambda told: told["network"]["txBytes"])
    assert home.kubectl("delete", "pod", "serves", "--now").code == 0


def series_of(home: Embedded, query: str) -> list[dict[str, Any]]:
    node = home.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}").out
    answer = home.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/stats/series?{query}")
    assert answer.code == 0, answer.err
    return list(json.loads(answer.out)["items"])


def used(home: Embedded, pod: str, field: str, container: str = "main") -> float:
    """What a pod's series say that it has used in all: each rate, for the seconds that it stands for."""
    query = f"namespace=default&pod={pod}&seconds=3600&points=720"
    items = [entry for entry in series_of(home, query) if entry["container"] == container]
    if not items:
        return 0.0
    rates = items[0]["values"][field]["mean"]
    return sum(rate * seconds for rate, seconds in zip(rates, items[0]["seconds"], strict=True) if rate)


# Four loads of which the kernel counts CPU seconds, bytes of memory, bytes to the disk and bytes to the network.
LOADS = (
    "import http.server, os, resource, threading, time, urllib.request\n"
    "data = b'x' * (50 * 2**20)\n"
    "server = http.server.ThreadingHTTPServer(('', 8000), http.server.SimpleHTTPRequestHandler)\n"
    "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
    "os.chdir('/scratch')\n"
    "open('/scratch/made', 'wb').write(data[: 2**20])\n"
    "file, end = os.open('/scratch/more', os.O_CREAT | os.O_WRONLY), time.monotonic() + SECONDS\n"
    "while time.monotonic() < end:\n"
    "    began = time.thread_time()\n"
    "    while time.thread_time() < began + 0.3: pass\n"
    "    os.pwrite(file, data[: 4 * 2**20], 0); os.fsync(file)\n"
    "    time.sleep(0.3)\n"
    "    disk = [line.split()[1] for line in open('/proc/self/io') if line.startswith('write_bytes')][0]\n"
    "    print('used', sum(resource.getrusage(resource.RUSAGE_SELF)[:2]), disk, flush=True)\n"
    "print('done', flush=True); threading.Event().wait()"
)


@pytest.mark.parametrize("seconds", [45, pytest.param(70, marks=pytest.mark.soak)])
def test_t10_series_agree_with_the_kernel_under_load_and_outlive_their_pod_and_the_agent(
    home: Embedded, seconds: int
) -> None:
    """A2: CPU, memory, disk and network within ten percent over a minute, with an agent killed in between."""
    program = LOADS.replace("SECONDS", str(seconds))
    with TemporaryDirectory(dir="/var/tmp") as disk:
        loads = with_scratch("loads", program, {"hostPath": {"path": disk}})
        assert home.kubectl("create", "-f", "-", stdin=text(loads)).code == 0
        path = "/api/v1/namespaces/default/pods/loads:8000/proxy/made"
        query = "namespace=default&pod=loads&points=720"
        wait_until("it is measured", lambda: any(len(item["times"]) > 1 for item in series_of(home, query)))

        def fetched() -> bool:
            return len(home.kubectl("get", "--raw", path).out) == 2**20

        wait_until("it serves", fetched)
        os.kill(home.agent_pid or 0, signal.SIGKILL)
        wait_until(
            "it has ended its loads", lambda: fetched() and "done" in home.kubectl("logs", "loads").out, seconds=180
        )
        lines = [line.split() for line in home.kubectl("logs", "loads").out.splitlines() if line.startswith("used")]
        cpu, written = map(float, lines[-1][1:3])
        kernel = home.kubectl("exec", "loads", "--", "cat", "/proc/net/dev").out
        interfaces = [line.replace(":", " ").split() for line in kernel.splitlines() if line.strip()[:3] == "eth"]
        sent = sum(int(fields[9]) for fields in interfaces)

        wait_until("all is measured", lambda: used(home, "loads", "cpu") > 0.9 * cpu, seconds=60)
        assert used(home, "loads", "cpu") == pytest.approx(cpu, rel=0.1, abs=0.5)
        assert used(home, "loads", "diskWrite") == pytest.approx(written, rel=0.1)
        assert used(home, "loads", "networkOut", container="") == pytest.approx(sent, rel=0.1)
        (main,) = [entry for entry in series_of(home, "namespace=default&pod=loads") if entry["container"] == "main"]
        resident = max(rss(pid) for pid, _ in processes_with(program))
        assert main["values"]["memory"]["mean"][-1] == pytest.approx(resident, rel=0.1)

        assert home.kubectl("delete", "pod", "loads", "--now").code == 0
        wait_until("it is in the history", lambda: series_of(home, "namespace=default&pod=loads")[0]["isGone"])
        assert used(home, "loads", "cpu") == pytest.approx(cpu, rel=0.1, abs=0.5)
        assert "CPU: now" in home.paceline("top", "pods", "loads", "--since", "10m").out


def test_containers_are_told_apart(home: Embedded) -> None:
    shown = {(row[0], row[1]): number(row[3]) for row in rows(home, "pods", "--containers", *MINE)}

    assert set(shown) == {("busy", "main"), ("busy", "side"), ("idle", "side")}
    assert shown["busy", "main"] > 64 > shown["busy", "side"]


def test_pods_are_chosen_by_label_and_by_name(home: Embedded) -> None:
    assert [row[0] for row in rows(home, "pods", "-l", "app=idle")] == ["idle"]
    assert [row[0] for row in rows(home, "pod", "busy")] == ["busy"]
    nobody = home.kubectl("top", "pods", "-l", "app=nobody")
    assert (nobody.code, nobody.err) == (0, "No resources found in default namespace.\n")


def test_a_node_is_shown_with_its_share(home: Embedded) -> None:
    (node,) = rows(home, "nodes")

    assert node[0] == home.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}").out
    assert number(node[1]) > 0
    assert 0 < number(node[4]) <= 100


def test_what_is_not_there_is_told_in_the_words_of_kubernetes(home: Embedded) -> None:
    pod, node = home.kubectl("top", "pod", "no"), home.kubectl("top", "node", "no")

    assert (pod.code, node.code) == (1, 1)
    assert pod.err == 'Error from server (NotFound): pods "no" not found\n'
    assert node.err == 'Error from server (NotFound): node "no" not found\n'


def test_our_own_command_shows_jobs_pods_and_nodes(home: Embedded) -> None:
    """X-18"""
    job = pytorch("work", command=["python", "-c", BUSY], workers=2)
    assert home.kubectl("create", "-f", "-", stdin=text(job)).code == 0

    def shown() -> list[str]:
        rows = [line.split() for line in home.paceline("top").out.splitlines()[1:]]
        return next((row for row in rows if row[:2] == ["work", "2"] and number(row[3]) > 128), [])

    assert wait_until("both pods of the job are measured, and have their memory", shown)
    pods = home.paceline("top", "pods", "--sort-by", "memory").out.splitlines()
    assert pods[0].split() == ["NAME", "CPU(CORES)", "MEMORY"]
    assert pods[-1].split()[0] == "idle"
    assert len(home.paceline("top", "nodes").out.splitlines()) == 2
    assert home.paceline("top", "everything").code == 2
