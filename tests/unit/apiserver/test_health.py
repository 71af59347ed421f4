"""Health tells the truth: a server whose store cannot be written to is neither ready nor alive."""

import pytest

from paceline.errors import HostError
from paceline.testing.memory_backend import MemoryLog
from tests.unit.apiserver.client import CONFIG_MAPS, config_map

NO_TOKEN = {"authorization": None}
PATHS = ("/healthz", "/livez", "/readyz")


class Failing(MemoryLog):
    """A log whose disk fails to confirm a write when a test says so."""

    is_failing = False

    def append(self, batch):
        if self.is_failing:
            raise HostError("/store/objects.db: the disk did not confirm a write; check the disk, then start again")
        super().append(batch)


@pytest.fixture
def log():
    return Failing()


@pytest.mark.parametrize("path", PATHS)
async def test_a_server_that_works_is_ok(client, path):
    assert (await client.send("GET", path, headers=NO_TOKEN)).body == b"ok"
    said = await client.send("GET", path, query={"verbose": ""}, headers=NO_TOKEN)
    assert (said.code, said.body.decode()) == (200, f"[+]ping ok\n[+]store ok\n{path[1:]} check passed\n")


@pytest.mark.parametrize("path", PATHS)
async def test_after_a_failed_sync_it_is_not_and_says_why_to_whoever_has_a_token(client, log, path):
    assert (await client.post(CONFIG_MAPS, config_map("before"))).code == 201
    log.is_failing = True
    assert (await client.post(CONFIG_MAPS, config_map("lost"))).code == 500
    # Also when the disk works again: what the kernel still holds of it cannot be trusted.
    log.is_failing = False

    anyone, somebody = await client.send("GET", path, headers=NO_TOKEN), await client.send("GET", path)

    assert (anyone.code, somebody.code) == (503, 503)
    assert "reason withheld" in anyone.body.decode()
    assert "did not confirm a write" not in anyone.body.decode()
    assert "the disk did not confirm a write" in somebody.body.decode()
    assert (await client.send("GET", f"{path}/ping", headers=NO_TOKEN)).code == 200
    # What was acknowledged is still there to be read.
    assert (await client.get(f"{CONFIG_MAPS}/before")).code == 200
    assert (await client.get(f"{CONFIG_MAPS}/lost")).code == 404
