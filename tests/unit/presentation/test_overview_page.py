"""The overview's machine."""

from datetime import UTC, datetime

from paceline.presentation.overview_page import overview_page

NOW = datetime(2030, 1, 31, 13, tzinfo=UTC)


def node(**allocatable):
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": "vm"}, "status": {"allocatable": allocatable, "conditions": ready}}


def pod(requests, *, node_name="vm", phase="Running"):
    containers = [{"resources": {"limits": requests}}, {"resources": {"requests": {"cpu": "500m"}}}]
    return {"spec": {"nodeName": node_name, "containers": containers}, "status": {"phase": phase}}


def amounts(page, resource):
    return next(entry for entry in page["resources"] if entry["resource"] == resource)


def test_requests_of_placed_and_of_waiting_pods_are_told_apart():
    pods = [pod({"cpu": "1"}), pod({"cpu": "2"}, node_name=""), pod({"cpu": "4"}, phase="Succeeded")]

    shown = amounts(overview_page([node(cpu="8"), node(cpu="8")], pods, None, NOW), "cpu")

    assert (shown["allocatable"], shown["requested"], shown["waiting"]) == (16, 1.5, 2.5)


def test_what_is_used_is_known_only_with_a_metrics_api():
    without = overview_page([node(memory="1Gi")], [], None, NOW)
    measured = overview_page([node(memory="1Gi")], [], [{"usage": {"memory": "512Mi", "cpu": "1"}}], NOW)

    assert (without["hasUsage"], amounts(without, "memory")["used"]) == (False, None)
    assert (measured["hasUsage"], amounts(measured, "memory")["used"]) == (True, 2**29)


def test_devices_are_listed_behind_cpu_and_memory():
    page = overview_page([node(**{"nvidia.com/gpu": "2", "memory": "1Gi", "cpu": "1", "pods": "110"})], [], None, NOW)

    assert [entry["resource"] for entry in page["resources"]] == ["cpu", "memory", "nvidia.com/gpu"]
