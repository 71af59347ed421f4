"""No list that a caller writes costs more than in proportion to its length."""

import time

import pytest

from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.store.backend import StoreLimits
from tests.contract.subjects import our_app
from tests.unit.apiserver.client import HOST, JSON_PATCH, MERGE, STRATEGIC, TOKEN, Client

APPLY = "application/apply-patch+yaml"
NAMESPACE = "/api/v1/namespaces/default"
FEW, TIMES = 500, 4
# In proportion is 4, quadratic is 16; what does not grow makes the first smaller, noise the second larger.
MOST = 9.0
ROUNDS = 5


def meta(**metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big", **metadata}}


def owner(number):
    return {"apiVersion": "v1", "kind": "Pod", "name": f"p{number}", "uid": f"00000000-0000-4000-8000-{number:012}"}


def pod(container=None, **spec):
    main = {"name": "main", "image": "python", **(container or {})}
    whole = {"containers": [main], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big"}, "spec": whole}


def env(count):
    return [{"name": f"V{number}", "value": str(number)} for number in range(count)]


def volumes(count):
    return [{"name": f"v{number}", "emptyDir": {}} for number in range(count)]


def ports(count):
    return [{"name": f"p{number}", "containerPort": number + 1} for number in range(count)]


def job(kind, **spec):
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": "big"},
        "spec": {"successRules": [{"role0": [0]}], "failureRules": [{"role0": [0]}], **spec},
    }


def replicas(count):
    template = {"spec": {"containers": [{"name": "main", "image": "python"}]}}
    return [{"type": f"role{number}", "replicas": 1, "template": template} for number in range(count)]


def definition(properties=(), columns=(), **names):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": dict(properties)}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "many.test",
        "scope": "Namespaced",
        "names": {"plural": "toys", "singular": "toy", "kind": "Toy", **names},
        "versions": [{**version, "additionalPrinterColumns": list(columns)}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.many.test"},
        "spec": spec,
    }


def field_entries(count):
    return [
        {
            "manager": f"m{number}",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {f"f:k{number}": {}}},
        }
        for number in range(count)
    ]


def keys(count, value="v"):
    return {f"k{number}": value for number in range(count)}


# What is written, as a new object; each to its collection.
NEW = {
    "owner references": ("configmaps", lambda n: meta(ownerReferences=[owner(each) for each in range(n)])),
    "owner references, all the same": ("configmaps", lambda n: meta(ownerReferences=[owner(1)] * n)),
    "finalizers": ("configmaps", lambda n: meta(finalizers=[f"a.b/f{each}" for each in range(n)])),
    "finalizers that are wrong": ("configmaps", lambda n: meta(finalizers=[f"f{each}" for each in range(n)])),
    "labels": ("configmaps", lambda n: meta(labels=keys(n))),
    "annotations": ("configmaps", lambda n: meta(annotations=keys(n))),
    "managed fields": ("configmaps", lambda n: meta(managedFields=field_entries(n))),
    "data": ("configmaps", lambda n: {**meta(), "data": keys(n)}),
    "fields that nobody knows": ("configmaps", lambda n: {**meta(), **keys(n)}),
    "secret data": ("secrets", lambda n: {"metadata": {"name": "big"}, "data": keys(n, "dg==")}),
    "env": ("pods", lambda n: pod({"env": env(n)})),
    "env that refers": ("pods", lambda n: pod({"env": [{"name": "A", "value": "$(A)"}] * n})),
    "env from": ("pods", lambda n: pod({"envFrom": [{"configMapRef": {"name": f"c{each}"}} for each in range(n)]})),
    "container ports": ("pods", lambda n: pod({"ports": ports(n)})),
    "command": ("pods", lambda n: pod({"command": ["a"] * n})),
    "resources": ("pods", lambda n: pod({"resources": {"limits": {f"x.y/r{each}": "1" for each in range(n)}}})),
    "containers": (
        "pods",
        lambda n: {**pod(), "spec": {"containers": [{"name": f"c{each}", "image": "a"} for each in range(n)]}},
    ),
    "init containers": (
        "pods",
        lambda n: pod(initContainers=[{"name": f"i{each}", "image": "a"} for each in range(n)]),
    ),
    "volumes": ("pods", lambda n: pod(volumes=volumes(n))),
    "volumes and mounts": (
        "pods",
        lambda n: pod(
            {"volumeMounts": [{"name": f"v{each}", "mountPath": f"/m{each}"} for each in range(n)]},
            volumes=volumes(n),
        ),
    ),
    "items of a projected volume": (
        "pods",
        lambda n: pod(
            volumes=[
                {
                    "name": "v",
                    "configMap": {"name": "c", "items": [{"key": f"k{each}", "path": f"p{each}"} for each in range(n)]},
                }
            ]
        ),
    ),
    "tolerations": (
        "pods",
        lambda n: pod(tolerations=[{"key": f"k{each}", "operator": "Exists"} for each in range(n)]),
    ),
    "host aliases": (
        "pods",
        lambda n: pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": [f"h{each}"]} for each in range(n)]),
    ),
    "pull secrets": ("pods", lambda n: pod(imagePullSecrets=[{"name": f"s{each}"} for each in range(n)])),
    "scheduling gates": ("pods", lambda n: pod(schedulingGates=[{"name": f"a.b/g{each}"} for each in range(n)])),
    "readiness gates": ("pods", lambda n: pod(readinessGates=[{"conditionType": f"a.b/g{each}"} for each in range(n)])),
    "spread constraints": (
        "pods",
        lambda n: pod(
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": f"k{each}", "whenUnsatisfiable": "DoNotSchedule"} for each in range(n)
            ]
        ),
    ),
    "groups": ("pods", lambda n: pod(securityContext={"supplementalGroups": list(range(1, n + 1))})),
    "node selector": ("pods", lambda n: pod(nodeSelector=keys(n))),
    "node affinity": (
        "pods",
        lambda n: pod(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": f"k{each}", "operator": "Exists"}]} for each in range(n)
                        ]
                    }
                }
            }
        ),
    ),
    "service ports": (
        "services",
        lambda n: {
            "metadata": {"name": "big"},
            "spec": {"clusterIP": "None", "ports": [{"name": f"p{each}", "port": each + 1} for each in range(n)]},
        },
    ),
    "addresses of endpoints": (
        "endpoints",
        lambda n: {
            "metadata": {"name": "big"},
            "subsets": [{"addresses": [{"ip": f"10.0.{each // 250}.{each % 250 + 1}"} for each in range(n)]}],
        },
    ),
    "subsets of endpoints": (
        "endpoints",
        lambda n: {
            "metadata": {"name": "big"},
            "subsets": [{"addresses": [{"ip": f"10.0.{each // 250}.{each % 250 + 1}"}]} for each in range(n)],
        },
    ),
    "access modes": (
        "persistentvolumeclaims",
        lambda n: {
            "metadata": {"name": "big"},
            "spec": {"accessModes": ["ReadWriteOnce"] * n, "resources": {"requests": {"storage": "1Gi"}}},
        },
    ),
    "node taints": (
        "/api/v1/nodes",
        lambda n: {
            "metadata": {"name": "big"},
            "spec": {"taints": [{"key": f"k{each}", "effect": "NoSchedule"} for each in range(n)]},
        },
    ),
    "node conditions": (
        "/api/v1/nodes",
        lambda n: {
            "metadata": {"name": "big"},
            "status": {"conditions": [{"type": f"T{each}", "status": "True"} for each in range(n)]},
        },
    ),
    "roles of a job": (
        "/apis/batch.tensorstack.dev/v1beta1/namespaces/default/genericjobs",
        lambda n: job("GenericJob", replicaSpecs=replicas(n)),
    ),
    "ports of a job": (
        "/apis/batch.tensorstack.dev/v1beta1/namespaces/default/genericjobs",
        lambda n: job(
            "GenericJob",
            replicaSpecs=replicas(1),
            service={"ports": [{"name": f"p{each}", "port": each + 1} for each in range(n)]},
        ),
    ),
    "env of a job": (
        "/apis/batch.tensorstack.dev/v1beta1/namespaces/default/genericjobs",
        lambda n: job(
            "GenericJob",
            replicaSpecs=[{"type": "role0", "replicas": 1, "template": {"spec": pod({"env": env(n)})["spec"]}}],
        ),
    ),
    "launcher and workers of MPI": (
        "/apis/batch.tensorstack.dev/v1beta1/namespaces/default/mpijobs",
        lambda n: job("MPIJob", replicaSpecs=replicas(n)),
    ),
    "roles of a job, all the same": (
        "/apis/batch.tensorstack.dev/v1beta1/namespaces/default/genericjobs",
        lambda n: job("GenericJob", replicaSpecs=replicas(1) * n),
    ),
    "fields of a definition": (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        lambda n: definition(properties=keys(n, {"type": "string"}).items()),
    ),
    "columns of a definition": (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        lambda n: definition(
            columns=[{"name": f"c{each}", "type": "string", "jsonPath": f".spec.k{each}"} for each in range(n)]
        ),
    ),
    "short names of a definition": (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        lambda n: definition(shortNames=[f"t{each}" for each in range(n)]),
    ),
    "categories of a definition": (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        lambda n: definition(categories=[f"t{each}" for each in range(n)]),
    ),
}

# Bodies that are written by hand.
RAW = {
    "one field twice among many": lambda n: (
        b'{"metadata":{"name":"big"},"data":{%b,"k0":"w"}}' % b",".join(b'"k%d":"v"' % each for each in range(n))
    ),
    "every field twice": lambda n: (
        b'{"metadata":{"name":"big"},"data":{%b}}'
        % b",".join(b'"k%d":"v","k%d":"w"' % (each, each) for each in range(n))
    ),
}

# What is written to an object that is as long: the object, the type of the patch, the patch.
CHANGES = {
    "merge of data": (lambda n: {**meta(), "data": keys(n)}, MERGE, lambda n: {"data": keys(n, "w")}),
    "merge of owners": (
        lambda n: meta(ownerReferences=[owner(each) for each in range(n)]),
        MERGE,
        lambda n: {"metadata": {"ownerReferences": [owner(each + 1) for each in range(n)]}},
    ),
    "strategic merge of owners": (
        lambda n: meta(ownerReferences=[owner(each) for each in range(n)]),
        STRATEGIC,
        lambda n: {"metadata": {"ownerReferences": [owner(each + n // 2) for each in range(n)]}},
    ),
    "strategic merge of finalizers": (
        lambda n: meta(finalizers=[f"a.b/f{each}" for each in range(n)]),
        STRATEGIC,
        lambda n: {"metadata": {"finalizers": [f"a.b/f{each + n // 2}" for each in range(n)]}},
    ),
    "strategic deletion of owners": (
        lambda n: meta(ownerReferences=[owner(each) for each in range(n)]),
        STRATEGIC,
        lambda n: {
            "metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner(each)["uid"]} for each in range(n)]}
        },
    ),
    "strategic order of owners": (
        lambda n: meta(ownerReferences=[owner(each) for each in range(n)]),
        STRATEGIC,
        lambda n: {
            "metadata": {
                "$setElementOrder/ownerReferences": [{"uid": owner(each)["uid"]} for each in reversed(range(n))],
                "ownerReferences": [{"uid": owner(each)["uid"], "name": "x"} for each in range(n)],
            }
        },
    ),
    "strategic deletion of finalizers": (
        lambda n: meta(finalizers=[f"a.b/f{each}" for each in range(n)]),
        STRATEGIC,
        lambda n: {"metadata": {"$deleteFromPrimitiveList/finalizers": [f"a.b/f{each}" for each in range(n)]}},
    ),
    "JSON patch": (
        lambda n: {**meta(), "data": keys(n)},
        JSON_PATCH,
        lambda n: [{"op": "replace", "path": f"/data/k{each}", "value": "w"} for each in range(n)],
    ),
    "JSON patch that inserts": (
        lambda _: meta(finalizers=["a.b/c"]),
        JSON_PATCH,
        lambda n: [{"op": "add", "path": "/metadata/finalizers/0", "value": f"a.b/f{each}"} for each in range(n)],
    ),
    "JSON patch that copies": (
        lambda _: {**meta(), "data": {"k0": "v"}},
        JSON_PATCH,
        lambda n: [{"op": "copy", "from": "/data/k0", "path": f"/data/k{each + 1}"} for each in range(n)],
    ),
    "JSON patch that tests": (
        lambda n: {**meta(), "data": keys(n)},
        JSON_PATCH,
        lambda n: [{"op": "test", "path": f"/data/k{each}", "value": "v"} for each in range(n)],
    ),
    "apply of data": (
        lambda n: {**meta(), "data": keys(n)},
        APPLY,
        lambda n: {**meta(), "data": keys(n, "w")},
    ),
    "apply of finalizers": (
        lambda n: meta(finalizers=[f"a.b/f{each}" for each in range(n)]),
        APPLY,
        lambda n: meta(finalizers=[f"a.b/f{each + n // 2}" for each in range(n)]),
    ),
    "apply of owners": (
        lambda n: meta(ownerReferences=[owner(each) for each in range(n)]),
        APPLY,
        lambda n: meta(ownerReferences=[owner(each + n // 2) for each in range(n)]),
    ),
}

SELECTORS = {
    "labels that are absent": lambda n: {"labelSelector": ",".join(f"!a{each}" for each in range(n))},
    "labels that differ": lambda n: {"labelSelector": ",".join(f"a!=v{each}" for each in range(n))},
    "labels in a set": lambda n: {"labelSelector": f"a in ({','.join(f'v{each}' for each in range(n))})"},
    "fields that differ": lambda n: {"fieldSelector": ",".join(f"metadata.name!=a{each}" for each in range(n))},
}


@pytest.fixture
async def client():
    """A server with our kinds over a store in memory."""
    gate = Authenticator(tokens={hash_token(TOKEN): "admin"}, hosts=frozenset({HOST}))
    async with our_app(gate, limits=StoreLimits()) as app:
        client = Client(app)
        await client.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
        yield client


async def cost(send, count):
    """The least CPU time of some tries, and the answer."""
    times = []
    for _ in range(3):
        begun = time.process_time()
        answer = await send(count)
        times.append(time.process_time() - begun)
    assert answer.code < 500, answer.body[:500]
    return min(times), answer


async def assert_in_proportion(send):
    """The least of many tries counts: a busy machine makes some dearer; what is quadratic stays so in all of them."""
    few = many = float("inf")
    for _ in range(ROUNDS):
        few, (many_now, answer) = min(few, (await cost(send, FEW))[0]), await cost(send, FEW * TIMES)
        many = min(many, many_now)
        if many < MOST * max(few, 0.002):
            return
    pytest.fail(f"{few * 1000:.1f} ms became {many * 1000:.1f} ms: {answer.body[:300]}")


def collection(place):
    return place if place.startswith("/") else f"{NAMESPACE}/{place}"


@pytest.mark.parametrize("case", NEW)
async def test_a_new_object_costs_what_it_is_long(client, case):
    place, make = NEW[case]

    async def send(count):
        return await client.post(collection(place), make(count), dryRun="All")

    await assert_in_proportion(send)


@pytest.mark.parametrize("case", RAW)
async def test_a_body_costs_what_it_is_long(client, case):
    async def send(count):
        return await client.post(f"{NAMESPACE}/configmaps", RAW[case](count), dryRun="All")

    await assert_in_proportion(send)


async def test_a_document_costs_what_it_is_long(client):
    async def send(count):
        text = "metadata: {name: big}\ndata:\n" + "".join(f"  k{each}: v\n" for each in range(count))
        headers = {"content-type": "application/yaml"}
        path = f"{NAMESPACE}/configmaps"
        return await client.send("POST", path, text.encode(), query={"dryRun": "All"}, headers=headers)

    await assert_in_proportion(send)


@pytest.mark.parametrize("case", CHANGES)
async def test_a_change_costs_what_it_is_long(client, case):
    make, sort, patch = CHANGES[case]
    path = f"{NAMESPACE}/configmaps/big"
    there = 0

    async def send(count):
        nonlocal there
        if there != count:
            await client.delete(path)
            await client.patch(path, {"metadata": {"finalizers": None}})
            made = await client.post(f"{NAMESPACE}/configmaps", make(count))
            assert made.code == 201, made.body[:300]
            there = count
        force = {"force": "true"} if sort == APPLY else {}
        return await client.patch(path, patch(count), sort=sort, dryRun="All", fieldManager="m", **force)

    await assert_in_proportion(send)


@pytest.mark.parametrize("case", SELECTORS)
async def test_a_selection_costs_what_it_is_long(client, case):
    for number in range(100):
        await client.post(f"{NAMESPACE}/configmaps", {"metadata": {"name": f"c{number}", "labels": {"a": "v0"}}})

    async def send(count):
        return await client.get(f"{NAMESPACE}/configmaps", **SELECTORS[case](count))

    await assert_in_proportion(send)
