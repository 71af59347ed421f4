"""/metrics of the API server: who may read it, and what it counts."""

from tests.unit.apiserver.client import CONFIG_MAPS, config_map

NO_TOKEN = {"authorization": None}


async def metrics(client):
    response = await client.send("GET", "/metrics")
    assert response.code == 200
    return response.body.decode().splitlines()


def value(lines, name):
    """Return the value of a sample, 0 if there is none."""
    return sum(int(line.removeprefix(f"{name} ")) for line in lines if line.startswith(f"{name} "))


async def test_requests_are_counted_by_verb_and_code(client):
    old_lines = await metrics(client)
    assert (await client.post(CONFIG_MAPS, config_map("a"))).code == 201
    assert (await client.post(CONFIG_MAPS, config_map("a"))).code == 409
    lines = await metrics(client)
    assert value(lines, 'apiserver_request_total{verb="POST",code="201"}') == 1 + value(
        old_lines, 'apiserver_request_total{verb="POST",code="201"}'
    )
    assert 'apiserver_request_total{verb="POST",code="409"} 1' in lines
    assert value(lines, 'apiserver_request_duration_seconds_count{verb="POST"}') >= 2
    assert 'apiserver_current_inflight_requests{verb="GET"} 1' in lines, "the scrape itself is under way"


async def test_a_method_that_somebody_invents_is_not_a_label(client):
    assert (await client.send("DANCE", CONFIG_MAPS)).code == 405
    lines = await metrics(client)
    assert 'apiserver_request_total{verb="other",code="405"} 1' in lines


async def test_metrics_need_a_token_and_are_only_read(client):
    assert (await client.send("GET", "/metrics", headers=NO_TOKEN)).code == 401
    assert (await client.send("POST", "/metrics")).code == 405
    assert (await client.send("GET", "/metrics/more")).code == 404
