"""What the cluster keeps by itself, in virtual time: namespaces, accounts, where services lead."""

import asyncio

from paceline.client.interface import ACCOUNTS, CONFIG_MAPS, ENDPOINTS, NAMESPACES, PODS, SERVICES, SLICES
from paceline.errors import NotFound
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course
from tests.integration.life import PATIENCE_SECONDS, ended, started


async def until(holds):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.1)


async def is_there(client, where, namespace, name):
    try:
        return await client.get(where, namespace, name)
    except NotFound:
        return None


def pod(name, namespace, **labels):
    container = {
        "name": "main",
        "image": "python:3",
        "command": ["true"],
        "ports": [{"name": "web", "containerPort": 8080}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 2},
    }


def test_a_namespace_goes_with_everything_that_is_in_it():
    async def main():
        cluster = await started(1)
        cluster.sim.processes.script = lambda _intent: Course()
        client = cluster.client()
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        await client.create(PODS, pod("p", "other"))

        async def runs():
            return (await client.get(PODS, "other", "p"))["status"]["phase"] == "Running"

        async def gone():
            return await is_there(client, NAMESPACES, "", "other") is None

        await until(runs)
        await client.delete(NAMESPACES, ("", "other"))
        assert (await client.get(NAMESPACES, "", "other"))["status"]["phase"] == "Terminating"
        await until(gone)
        assert (await client.list(PODS)).items == ()
        await until(lambda: asyncio.sleep(0, not cluster.sim.processes.running()))
        await ended(cluster)

    run_simulated(1, main())


def test_every_namespace_has_an_account_and_the_authority_and_gets_them_back():
    async def main():
        cluster = await started(2)
        client = cluster.client()
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})

        async def is_whole():
            found = [await is_there(client, ACCOUNTS, "other", "default")]
            found.append(await is_there(client, CONFIG_MAPS, "other", "kube-root-ca.crt"))
            return all(found) and "ca.crt" in found[1]["data"]

        await until(is_whole)
        await client.delete(ACCOUNTS, ("other", "default"))
        await client.patch(CONFIG_MAPS, ("other", "kube-root-ca.crt"), {"data": {"ca.crt": None, "x": "y"}})
        await until(is_whole)
        await ended(cluster)

    run_simulated(2, main())


def test_a_service_leads_to_the_pods_that_are_ready():
    async def main():
        cluster = await started(3)
        cluster.sim.processes.script = lambda _intent: Course(seconds=60)
        client = cluster.client()
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "web"}]}
        metadata = {"name": "web", "namespace": "default"}
        await client.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
        await client.create(PODS, pod("in", "default", app="web"))
        await client.create(PODS, pod("out", "default", app="other"))

        async def leads():
            found = await is_there(client, ENDPOINTS, "default", "web")
            return bool(found and found.get("subsets"))

        await until(leads)
        address = (await client.get(PODS, "default", "in"))["status"]["podIP"]
        (subset,) = (await client.get(ENDPOINTS, "default", "web"))["subsets"]
        piece = await client.get(SLICES, "default", "web-0")
        assert [each["ip"] for each in subset["addresses"]] == [address]
        assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
        assert [each["addresses"] for each in piece["endpoints"]] == [[address]]
        assert piece["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]

        async def leads_nowhere():
            return not await leads()

        await until(leads_nowhere)
        await client.delete(SERVICES, ("default", "web"))

        async def is_forgotten():
            return not await is_there(client, SLICES, "default", "web-0")

        await until(is_forgotten)
        assert await is_there(client, ENDPOINTS, "default", "web") is None
        await ended(cluster)

    run_simulated(3, main())
