"""What changes in a config map reaches the files of a pod that runs."""

import asyncio

from paceline.apimachinery.meta import uid_of
from paceline.client.interface import CONFIG_MAPS, PODS
from tests.unit.node.conftest import FOLDERS


def words(**data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "words", "namespace": "default"},
        "data": data,
    }


def shown(place, uid):
    """Give what lies in the pod's first volume, by name."""
    files, folder = place.sim.files, FOLDERS.volume(uid, 0)
    version = files.read(folder / "..data").decode().removeprefix("-> ")
    return {name: files.read(folder / version / name) for name in files.names(folder / version)}


MOUNT = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


async def until_shown(place, uid, wanted):
    while True:
        if shown(place, uid) == wanted:
            return
        await asyncio.sleep(1)


def test_a_config_map_that_changes_changes_in_the_pod_and_one_that_goes_stays_there(play):
    async def story(place):
        await place.cluster.create(CONFIG_MAPS, words(a="1", b="2"))
        async with place.agent():
            pod = await place.create(container=MOUNT, volumes=[{"name": "v", "configMap": {"name": "words"}}])
            await place.phase("Running")
            assert shown(place, uid_of(pod)) == {"a": b"1", "b": b"2"}
            await place.cluster.patch(CONFIG_MAPS, ("default", "words"), {"data": {"a": "one", "b": None, "c": "3"}})
            await until_shown(place, uid_of(pod), {"a": b"one", "c": b"3"})
            await place.cluster.delete(CONFIG_MAPS, ("default", "words"), {})
            await asyncio.sleep(60)
            assert shown(place, uid_of(pod)) == {"a": b"one", "c": b"3"}

    play(story)


def test_labels_that_change_change_in_the_pod(play):
    async def story(place):
        items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
        async with place.agent():
            pod = await place.create(container=MOUNT, volumes=[{"name": "v", "downwardAPI": {"items": items}}])
            await place.phase("Running")
            assert shown(place, uid_of(pod)) == {"labels": b""}
            await place.cluster.patch(PODS, ("default", "demo"), {"metadata": {"labels": {"a": "b"}}})
            await until_shown(place, uid_of(pod), {"labels": b'a="b"'})

    play(story)
