"""How full claims are is told, and looking does not take more time than it may."""

from pathlib import Path

from paceline.node.server.stats import VolumeUsage
from paceline.testing.sim.effects import SimBlocking, sim_world


def claim(name, volume):
    return {"metadata": {"name": name, "namespace": "team"}, "spec": {"volumeName": volume}}


def volume(path, capacity="1Ki", **place):
    source = place or {"hostPath": {"path": path}}
    return {"spec": {"capacity": {"storage": capacity}, **source}}


def filling(sim, claims, volumes):
    return VolumeUsage(
        files=sim.files,
        clock=sim.clock,
        blocking=SimBlocking(),
        claims={("team", name): claim(name, bound) for name, bound in claims.items()},
        volumes={("", name): each for name, each in volumes.items()},
    )


def folder_with(sim, path, size):
    sim.files.make_folder(Path(path))
    sim.files.overwrite(Path(path) / "file", bytes(size))


async def test_every_claim_that_is_a_folder_is_told():
    sim = sim_world()
    folder_with(sim, "/disk/a", 100)
    claims = {"a": "pv-a", "b": "pv-b", "waits": "", "far": "pv-far"}
    volumes = {
        "pv-a": volume("/disk/a"),
        "pv-b": volume("", local={"path": "/disk/b"}),
        "pv-far": volume("", nfs={"server": "nas"}),
    }
    subject = filling(sim, claims, volumes)
    assert subject.summary() == ()
    await subject.measure()

    told = {each["pvcRef"]["name"]: (each["usedBytes"], each["availableBytes"]) for each in subject.summary()}
    assert told == {"a": (100, 924), "b": (0, 1024)}


async def test_a_pod_is_told_of_its_own_claims_by_its_own_names():
    sim = sim_world()
    folder_with(sim, "/disk/a", 2000)
    subject = filling(sim, {"a": "pv-a"}, {"pv-a": volume("/disk/a")})
    await subject.measure()
    wanted = [{"name": "data", "persistentVolumeClaim": {"claimName": "a"}}, {"name": "tmp", "emptyDir": {}}]
    mine = {"metadata": {"name": "p", "namespace": "team"}, "spec": {"volumes": wanted}}
    other = {"metadata": {"name": "p", "namespace": "other"}, "spec": {"volumes": wanted}}

    assert [(each["name"], each["availableBytes"]) for each in subject.of(mine)] == [("data", 0)]
    assert subject.of(other) == []


class SlowFiles:
    """Files that take a while to add up."""

    def __init__(self, sim, seconds):
        self.sim, self.seconds, self.looks = sim, seconds, 0

    def used(self, _path):
        self.looks += 1
        self.sim.clock.advance(self.seconds)
        return self.looks


async def test_what_takes_long_is_looked_at_seldom():
    sim = sim_world()
    subject = filling(sim, {"a": "pv-a"}, {"pv-a": volume("/disk/a")})
    subject.files = SlowFiles(sim, seconds=10)
    looks = []
    for _ in range(4):
        await subject.measure()
        looks.append(subject.files.looks)
        sim.clock.advance(200)

    assert looks == [1, 1, 1, 2]
