"""A stage: a very small HTTP server that tells the SDK what a test wants it to see."""

import contextlib
import json
import queue
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from paceline.client.rest_config import Access
from paceline.client.sync import DirectCluster
from paceline.sdk.client import Session
from paceline.sdk.submission.manifest import read_file

GROUP = "/apis/batch.tensorstack.dev"
JOBS = f"{GROUP}/v1beta1/namespaces/default/pytorchtrainingjobs"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
SECRETS = "/api/v1/namespaces/default/secrets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/default/events"
ANSWERS = {
    GROUP: {"name": "batch.tensorstack.dev", "preferredVersion": {"groupVersion": "batch.tensorstack.dev/v1beta1"}},
    f"{GROUP}/v1beta1": {
        "groupVersion": "batch.tensorstack.dev/v1beta1",
        "resources": [
            {
                "name": "pytorchtrainingjobs",
                "singularName": "pytorchtrainingjob",
                "kind": "PyTorchTrainingJob",
                "namespaced": True,
                "shortNames": ["pj"],
            },
            {"name": "pytorchtrainingjobs/status", "kind": "PyTorchTrainingJob", "namespaced": True},
        ],
    },
    "/api/v1": {
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": True, "shortNames": ["po"]},
            {
                "name": "persistentvolumeclaims",
                "singularName": "persistentvolumeclaim",
                "kind": "PersistentVolumeClaim",
                "namespaced": True,
                "shortNames": ["pvc"],
            },
            {"name": "nodes", "singularName": "node", "kind": "Node", "namespaced": False, "shortNames": ["no"]},
        ],
    },
    "/apis": {"groups": []},
}


class Stage:
    """Objects by path, whoever watches them, and logs by pod, a list of takes: pieces and the end, or a refusal."""

    def __init__(self):
        self.objects = {}
        self.watchers = defaultdict(list)
        self.logs = defaultdict(list)
        self.asked = queue.SimpleQueue()
        self.revision = 0
        self.history = []
        self.refused, self.deleted, self.patched = set(), [], []
        self.forbidden = set()
        # Who the caller is; empty for a cluster that does not tell.
        self.user = ""
        self.port = 0
        self.lock = threading.Lock()

    def put(self, collection, obj):
        with self.lock:
            name = obj["metadata"]["name"]
            change = "MODIFIED" if (collection, name) in self.objects else "ADDED"
            self._tell(collection, change, obj)
            self.objects[collection, name] = obj

    def drop(self, collection, name):
        with self.lock:
            self._tell(collection, "DELETED", self.objects.pop((collection, name)))

    def hang_up(self, collection):
        with self.lock:
            for watcher in self.watchers.pop(collection, []):
                watcher.put(None)

    def _tell(self, collection, change, obj):
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        event = {"type": change, "object": obj}
        self.history.append((self.revision, collection, event))
        for watcher in self.watchers[collection]:
            watcher.put(event)

    def list(self, collection):
        items = [obj for (where, _), obj in self.objects.items() if where == collection]
        return {"kind": "List", "metadata": {"resourceVersion": str(self.revision)}, "items": items}

    def start(self):
        """Open the doors; after a stop, at the same address as before."""
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), type("OnStage", (Handler,), {"stage": self}))
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def stop(self):
        for collection in list(self.watchers):
            self.hang_up(collection)
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stage: Stage

    def log_message(self, *_):
        pass

    def handle(self):
        # Followers hang up in mid-stream; that is their right.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        _, _, rest = url.path.partition("/pods/")
        if url.path in self.stage.forbidden:
            self._refuse(403, "Forbidden", f"you may not read {url.path}")
        elif rest.endswith("/log"):
            self.stage.asked.put(query)
            self._log(rest.removesuffix("/log"))
        elif query.get("watch"):
            self._watch(url.path, query["resourceVersion"])
        elif url.path in ANSWERS:
            self._json(ANSWERS[url.path])
        elif url.path in (JOBS, PODS, CLAIMS, SECRETS, CONFIG_MAPS, NODES, EVENTS):
            with self.stage.lock:
                self._json(self.stage.list(url.path))
        else:
            parent, _, name = url.path.rpartition("/")
            found = self.stage.objects.get((parent, name))
            if found:
                self._json(found)
            else:
                self._refuse(404, "NotFound", f"{name} not found")

    def do_POST(self):
        sent = self._sent()
        path = urlsplit(self.path).path
        if path.endswith("/selfsubjectreviews"):
            self._review(sent)
            return
        name = sent["metadata"]["name"]
        with self.stage.lock:
            is_taken = (path, name) in self.stage.objects
        if is_taken:
            self._refuse(409, "AlreadyExists", f"{name} already exists")
        elif name in self.stage.refused:
            cause = {"field": "spec.replicas", "message": "Invalid value: 0: must be at least 1"}
            self._refuse(422, "Invalid", "no", details={"name": name, "causes": [cause]})
        else:
            sent["metadata"]["uid"] = f"uid-of-{name}"
            if "dryRun=All" not in self.path:
                self.stage.put(path, sent)
            self._json(sent)

    def _review(self, sent):
        if not self.stage.user:
            self._refuse(404, "NotFound", "no such resource")
            return
        self._json({**sent, "status": {"userInfo": {"username": self.stage.user}}})

    def do_DELETE(self):
        self.stage.deleted.append((self.path, self._sent()))
        self.stage.drop(*self.path.rsplit("/", 1))
        self._json({"kind": "Status"})

    def do_PATCH(self):
        path, name = urlsplit(self.path).path.rsplit("/", 1)
        self.stage.patched.append(self._sent())
        self._json(self.stage.objects[path, name])

    def _sent(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _refuse(self, code, reason, message, **more):
        status = {"kind": "Status", "code": code, "reason": reason, "message": message, **more}
        self._json(status, status=code)

    def _json(self, body, *, status=200):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _watch(self, collection, since):
        mine = queue.SimpleQueue()
        with self.stage.lock:
            self.stage.watchers[collection].append(mine)
            for revision, where, event in self.stage.history:
                if where == collection and revision > int(since):
                    mine.put(event)
        self._begin()
        while (event := mine.get()) is not None:
            self._chunk(json.dumps(event).encode() + b"\n")
        self._chunk(b"")

    def _log(self, pod):
        takes = self.stage.logs[pod]
        if takes and isinstance(takes[0], str):
            self._refuse(404, "NotFound", takes.pop(0))
            return
        self._begin()
        for piece in takes.pop(0) if takes else []:
            if isinstance(piece, bytes):
                self._chunk(piece)
            else:
                piece()
        self._chunk(b"")

    def _begin(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()
        if not data:
            self.close_connection = True


@pytest.fixture
def stage():
    played = Stage()
    played.start()
    yield played
    played.stop()


@pytest.fixture
def session(stage):
    access = Access(server=f"http://127.0.0.1:{stage.port}")
    with Session(lambda: DirectCluster(access), "default", read=read_file) as opened:
        yield opened


@pytest.fixture
def job_object():
    def make(name="digits", phase="Pending", uid="uid-1", **status):
        return {
            "apiVersion": "batch.tensorstack.dev/v1beta1",
            "kind": "PyTorchTrainingJob",
            "metadata": {"name": name, "namespace": "default", "uid": uid},
            "spec": {"replicaSpecs": [{"type": "worker", "replicas": 2}]},
            "status": {"phase": phase, **status},
        }

    return make


@pytest.fixture
def pod_object():
    def make(index=0, attempt=0, phase="Running", *, owner="uid-1", code=0):
        state = {"running": {}} if phase == "Running" else {"terminated": {"exitCode": code}}
        statuses = [] if phase == "Pending" else [{"name": "main", "state": state, "restartCount": 0}]
        labels = {"replica-type": "worker", "replica-index": str(index), "paceline.dev/attempt": str(attempt)}
        return {
            "metadata": {
                "name": f"digits-1a2b3-worker-{index}" + (f"-r{attempt}" if attempt else ""),
                "namespace": "default",
                "uid": f"pod-{index}-{attempt}",
                "labels": {**labels, "tensorstack.dev/owner-name": "digits"},
                "ownerReferences": [{"controller": True, "uid": owner}],
            },
            "status": {"phase": phase, "containerStatuses": statuses},
        }

    return make
