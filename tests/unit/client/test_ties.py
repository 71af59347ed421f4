"""Whoever follows very many objects gets of each only which one it is, whom it belongs to and what holds it."""

from paceline.client.interface import PODS, Change, Select

TIES = Select(only_ties=True)


def test_a_list_asks_for_metadata_and_keeps_less(with_cluster, script, pods_page, pod):
    full = pod("a", 7, labels={"big": "x"}, annotations={"bigger": "y"}, finalizers=["hold"])
    script.lists = [pods_page(9, full)]

    async def use(cluster):
        page = await cluster.list(PODS, TIES)
        kept = {"namespace": "team", "name": "a", "uid": "uid-a", "resourceVersion": "7", "finalizers": ["hold"]}
        assert (page.items, page.revision) == (({"metadata": kept},), "9")

    with_cluster(use)


def test_a_list_keeps_only_what_its_reader_wants(with_cluster, script, pods_page, pod):
    script.lists = [pods_page(9, pod("a", 7), after="more"), pods_page(9, pod("b", 8))]

    async def use(cluster):
        page = await cluster.list(PODS, Select(trim=lambda obj: {"metadata": {"name": obj["metadata"]["name"]}}))
        assert page.items == ({"metadata": {"name": "a"}}, {"metadata": {"name": "b"}})

    with_cluster(use)


def test_a_watch_keeps_as_little(with_cluster, script, answer, pod):
    owned = pod("a", 7, owner="uid-b", labels={"big": "x"})
    script.watches = [answer([{"type": "ADDED", "object": owned}])]

    async def use(cluster):
        events = [each async for each in cluster.watch(PODS, TIES, since="5")]
        assert [each.change for each in events] == [Change.ADDED]
        assert set(events[0].object) == {"metadata"}
        assert "labels" not in events[0].object["metadata"]
        assert events[0].object["metadata"]["ownerReferences"] == owned["metadata"]["ownerReferences"]

    with_cluster(use)
