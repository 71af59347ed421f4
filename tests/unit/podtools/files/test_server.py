"""The file server does what its requests ask for, beneath its root and nowhere else."""

import hashlib
import http.client
import io
import json
import os
import socket
import tarfile
import tempfile
import threading
import zipfile
from pathlib import Path
from urllib.parse import urlencode

import pytest

from paceline.podtools.files.server import TOKEN_HEADER, FileServer
from paceline.podtools.files.volume import UPLOAD_PREFIX, open_root

TOKEN = "a-token"


class Client:
    def __init__(self, server):
        self.server = server

    def send(self, method, route, body=b"", /, *, headers=None, token=TOKEN, **query):
        connection = http.client.HTTPConnection(*self.server.server_address[:2], timeout=20)
        target = f"{route}?{urlencode(query, errors='surrogateescape')}"
        connection.request(method, target, body, {TOKEN_HEADER: token, **(headers or {})})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data, answer.headers

    def json(self, method, route, body=b"", /, **query):
        status, data, _ = self.send(method, route, body, **query)
        return status, json.loads(data)

    def names(self, path="", **query):
        status, answer = self.json("GET", "/list", path=path, **query)
        assert status == 200, answer
        return [entry["name"] for entry in answer["entries"]]

    def put(self, path, data, offset, content, **query):
        return self.json("PUT", "/upload", data, path=path, offset=offset, size=len(content), id="x", **query)


@pytest.fixture
def volume(request, tmp_path):
    # In memory if there are many files.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if request.node.get_closest_marker("slow") else tmp_path) as name:
        folder = Path(name, "volume")
        folder.mkdir()
        yield folder


@pytest.fixture
def client(volume):
    root = open_root(str(volume))
    with FileServer(("127.0.0.1", 0), root, TOKEN) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Client(server)
        server.shutdown()
        thread.join()
    os.close(root)


def test_without_the_token_nothing_is_told(client, volume):
    (volume / "secret").write_text("s")
    for token in ("", "another"):
        assert client.send("GET", "/list", token=token)[0] == 401
        assert client.send("DELETE", "/file", token=token, path="secret")[0] == 401
    assert client.send("GET", "/healthz", token="")[0] == 200
    assert (volume / "secret").exists()


def test_folders_come_first_and_what_is_being_uploaded_is_not_listed(client, volume):
    (volume / "b.txt").write_text("hello")
    (volume / "a").mkdir()
    (volume / f"{UPLOAD_PREFIX}1").write_text("")
    (volume / "link").symlink_to("b.txt")
    _, answer = client.json("GET", "/list")
    assert [(entry["name"], entry["type"], entry["size"]) for entry in answer["entries"]][:2] == [
        ("a", "folder", answer["entries"][0]["size"]),
        ("b.txt", "file", 5),
    ]
    assert answer["entries"][2]["target"] == "b.txt"
    assert answer["total"] == 3


@pytest.mark.slow
def test_a_hundred_thousand_files_are_listed_in_pages(client, volume):
    many = volume / "many"
    many.mkdir()
    handle = os.open(many, os.O_RDONLY)
    for number in range(100_000):
        os.mknod(f"{number:06}", dir_fd=handle)
    os.close(handle)
    first = client.json("GET", "/list", path="many", limit=1000)[1]
    second = client.json("GET", "/list", path="many", limit=1000, after=first["next"])[1]
    last = client.json("GET", "/list", path="many", limit=1000, after="1098999")[1]
    names = [[entry["name"] for entry in page["entries"]] for page in (first, second, last)]
    assert names == [[f"{start + number:06}" for number in range(1000)] for start in (0, 1000, 99_000)]
    assert (first["total"], last["next"]) == (100_000, "")


def test_names_that_are_no_text_can_be_listed_read_and_removed(client, volume):
    name = os.fsdecode(b"bad-\xff\xfe")
    (volume / name).write_text("bytes")
    assert client.names() == [name]
    assert client.send("GET", "/file", path=name)[1] == b"bytes"
    assert client.json("DELETE", "/file", path=name)[0] == 200


@pytest.mark.parametrize(
    ("method", "route", "query"),
    [
        ("GET", "/list", {"path": "out"}),
        ("GET", "/file", {"path": "out/secret"}),
        ("GET", "/file", {"path": "file"}),
        ("GET", "/file", {"path": "absolute"}),
        ("GET", "/stat", {"path": "out"}),
        ("GET", "/usage", {"path": "out"}),
        ("GET", "/archive", {"path": "out"}),
        ("GET", "/curves", {"path": "out"}),
        ("PUT", "/upload", {"path": "out/new", "size": 0, "id": "x"}),
        ("POST", "/folder", {"path": "out/new"}),
        ("POST", "/rename", {"path": "mine", "to": "out/mine"}),
        ("POST", "/rename", {"path": "out/secret", "to": "mine2"}),
        ("DELETE", "/file", {"path": "out/secret"}),
    ],
)
def test_links_that_lead_out_are_refused(client, volume, method, route, query):
    outside = volume.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (volume / "out").symlink_to("../outside")
    (volume / "file").symlink_to("../outside/secret")
    (volume / "absolute").symlink_to(outside / "secret")
    (volume / "mine").write_text("mine")
    status, answer = client.json(method, route, **query)
    assert status == 403, answer
    assert "leads out of the volume" in answer["message"]
    assert [entry.name for entry in outside.iterdir()] == ["secret"]
    assert (volume / "mine").exists()


@pytest.mark.parametrize("path", ["..", "../outside", "a/../../outside", "a/.."])
def test_dots_are_refused(client, volume, path):
    (volume / "a").mkdir()
    for method, route in (("GET", "/list"), ("GET", "/file"), ("POST", "/folder"), ("DELETE", "/file")):
        assert client.json(method, route, path=path)[0] == 400


def test_an_absolute_path_is_one_of_the_volume(client, volume):
    (volume / "etc").mkdir()
    (volume / "etc" / "mine").write_text("")
    assert client.names("/etc") == ["mine"]


def test_links_inside_the_volume_lead_where_they_point(client, volume):
    (volume / "data").mkdir()
    (volume / "data" / "x").write_text("x")
    (volume / "latest").symlink_to("data")
    assert client.names("latest") == ["x"]
    assert client.json("DELETE", "/file", path="latest", recursive="true")[0] == 200
    assert (volume / "data" / "x").exists()


def test_pipes_and_devices_are_not_opened(client, volume):
    os.mkfifo(volume / "pipe")
    status, answer = client.json("GET", "/file", path="pipe")
    assert (status, answer["message"]) == (400, "pipe: is neither a file nor a folder")


def test_ranges_are_answered_unless_the_file_has_changed(client, volume):
    (volume / "f").write_bytes(b"0123456789")
    status, data, headers = client.send("GET", "/file", path="f")
    assert (status, data) == (200, b"0123456789")
    etag = headers["ETag"]
    status, data, headers = client.send("GET", "/file", path="f", headers={"Range": "bytes=4-", "If-Range": etag})
    assert (status, data, headers["Content-Range"]) == (206, b"456789", "bytes 4-9/10")
    assert client.send("GET", "/file", path="f", headers={"Range": "bytes=2-3"})[1] == b"23"
    assert client.send("GET", "/file", path="f", headers={"Range": "bytes=10-"})[0] == 416
    (volume / "f").write_bytes(b"abc")
    status, data, _ = client.send("GET", "/file", path="f", headers={"Range": "bytes=4-", "If-Range": etag})
    assert (status, data) == (200, b"abc")


def test_no_browser_takes_a_file_for_a_page(client, volume):
    (volume / "page.html").write_text("<script>")
    headers = client.send("GET", "/file", path="page.html")[2]
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_folder_is_downloaded_as_one_file(client, volume):
    (volume / "a" / "deep").mkdir(parents=True)
    (volume / "a" / "deep" / "x").write_bytes(b"x" * 3_000_000)
    (volume / "a" / "y").write_text("why")
    (volume / "a" / "out").symlink_to("/etc/passwd")
    os.mkfifo(volume / "a" / "pipe")
    with zipfile.ZipFile(io.BytesIO(client.send("GET", "/archive", path="a")[1])) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["deep/", "deep/x", "y"]
        assert archive.read("deep/x") == b"x" * 3_000_000
    data = client.send("GET", "/archive", path="a", format="tar")[1]
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert sorted(tar.getnames()) == ["deep", "deep/x", "y"]
        assert tar.extractfile("y").read() == b"why"
    assert client.json("GET", "/archive", path="a", format="rar")[0] == 400


def test_an_upload_goes_on_where_it_was_cut_and_ends_as_the_same_bytes(client, volume):
    content = os.urandom(300_000)
    assert client.put("f", content[:100_000], 0, content)[1] == {"offset": 100_000, "done": False}
    # Cut in the middle of a part: only whole parts count.
    with socket.create_connection(client.server.server_address[:2]) as raw:
        query = urlencode({"path": "f", "offset": 100_000, "size": len(content), "id": "x"})
        head = f"PUT /upload?{query} HTTP/1.1\r\nHost: x\r\n{TOKEN_HEADER}: {TOKEN}\r\nContent-Length: 100000\r\n\r\n"
        raw.sendall(head.encode() + content[100_000:150_000])
    assert not (volume / "f").exists()
    _, answer = client.json("GET", "/upload", path="f", size=len(content), id="x")
    assert answer == {"offset": 100_000}
    status, answer = client.put("f", content[150_000:], 150_000, content)
    assert (status, answer["message"]) == (409, "the next part begins at 100000")
    digest = hashlib.sha256(content[100_000:]).hexdigest()
    assert client.put("f", content[100_000:], 100_000, content, sha256="0" * 64)[0] == 422
    assert client.put("f", content[100_000:], 100_000, content, sha256=digest)[1]["done"]
    assert (volume / "f").read_bytes() == content
    assert client.names() == ["f"]


def test_parts_of_another_file_are_never_mixed_in(client):
    assert client.put("f", b"aaaa", 0, b"aaaabbbb")[0] == 200
    _, answer = client.json("GET", "/upload", path="f", size=8, id="another")
    assert answer == {"offset": 0}


def test_an_upload_replaces_a_file_only_if_that_is_asked_for_and_never_a_folder(client, volume):
    (volume / "f").write_text("old")
    (volume / "d").mkdir()
    status, answer = client.put("f", b"new", 0, b"new")
    assert (status, answer["message"]) == (409, "f: exists already")
    assert client.put("f", b"new", 0, b"new", replace="true")[0] == 200
    assert (volume / "f").read_text() == "new"
    assert client.put("d", b"new", 0, b"new", replace="true")[0] == 409


def test_an_upload_can_be_cancelled(client, volume):
    client.put("f", b"a", 0, b"ab")
    assert client.json("DELETE", "/upload", path="f", size=2, id="x")[0] == 200
    assert list(volume.iterdir()) == []


def test_new_files_belong_to_the_owner_of_their_folder(client, volume):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(volume, 1000, 1001)
    client.put("f", b"", 0, b"")
    client.json("POST", "/folder", path="d")
    assert [(entry.stat().st_uid, entry.stat().st_gid) for entry in volume.iterdir()] == [(1000, 1001)] * 2


def test_files_are_renamed_within_the_volume_and_replace_nothing(client, volume):
    (volume / "a").write_text("a")
    (volume / "b").write_text("b")
    assert client.json("POST", "/folder", path="d")[0] == 201
    assert client.json("POST", "/folder", path="d")[0] == 409
    assert client.json("POST", "/rename", path="a", to="b")[0] == 409
    assert client.json("POST", "/rename", path="a", to="d/a")[0] == 200
    assert client.json("POST", "/rename", path="nothing", to="x")[0] == 404
    assert client.json("POST", "/rename", path="", to="x")[0] == 400
    assert (volume / "d" / "a").read_text() == "a"
    assert (volume / "b").read_text() == "b"


def test_a_folder_with_contents_is_removed_only_if_that_is_asked_for(client, volume):
    (volume / "d" / "deep").mkdir(parents=True)
    (volume / "d" / "deep" / "x").write_text("")
    assert client.json("DELETE", "/file", path="d")[0] == 409
    assert client.json("DELETE", "/file", path="")[0] == 400
    assert client.json("DELETE", "/file", path="d", recursive="true")[0] == 200
    assert list(volume.iterdir()) == []


def test_usage_tells_what_takes_the_space(client, volume):
    (volume / "a").mkdir()
    (volume / "a" / "x").write_bytes(b"x" * 100_000)
    (volume / "b").write_bytes(b"y" * 10_000)
    _, answer = client.json("GET", "/usage")
    sizes = {entry["name"]: entry["bytes"] for entry in answer["entries"]}
    assert sizes["a"] >= 100_000 > sizes["b"] >= 10_000
    assert answer["bytes"] >= sizes["a"] + sizes["b"]
    assert answer["capacity"] >= answer["available"] > 0


def test_what_is_no_request_is_refused_and_the_server_goes_on(client):
    for method, route, query in (
        ("GET", "/", {}),
        ("POST", "/list", {}),
        ("GET", "/list", {"limit": "-1"}),
        ("GET", "/list", {"path": "a" * 5000}),
        ("GET", "/list", {"path": "a\0b"}),
        ("PUT", "/upload", {"path": "f", "size": "x", "id": "x"}),
        ("PUT", "/upload", {"path": "f", "size": "1"}),
        ("GET", "/file", {"path": ""}),
    ):
        status, answer = client.json(method, route, **query)
        assert status in (400, 404), (route, query)
        assert answer["message"]
    with socket.create_connection(client.server.server_address[:2]) as raw:
        raw.sendall(b"\x00\xff garbage\r\n\r\n")
        raw.settimeout(5)
        raw.recv(1000)
    assert client.names() == []


def test_the_server_ends_only_when_nobody_uses_it(client):
    ended = threading.Event()

    def wait():
        client.server.wait_idle(0.2)
        ended.set()

    with client.server.in_use():
        thread = threading.Thread(target=wait)
        thread.start()
        assert not ended.wait(0.6)
        client.send("GET", "/healthz")
    assert ended.wait(20)
    thread.join()
