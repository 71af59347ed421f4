"""exec and attach as the agent serves them: channels, exit codes, and what ends with what."""

import base64
import json

import pytest

from paceline.node.host_info import User
from paceline.node.images import Environment
from paceline.node.runtime import shim
from paceline.node.runtime.exec_types import STDERR, STDOUT, ExecError
from paceline.node.runtime.sandbox import ContainerConfig
from paceline.testing.sim.effects import sim_world
from tests.unit.node.lines import Echo, line
from tests.unit.node.pods import UID, container, pod
from tests.unit.node.test_kubelet_api import FOLDERS, answer_to, ask, kubelet_over, scope_of

EXEC, ATTACH = "/exec/team/demo/main", "/attach/team/demo/main"
ALL = [("command", "sh"), ("command", "-c"), ("stdin", "true"), ("stdout", "true"), ("stderr", "true")]
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
CLOSE_INPUT = b"\x00"


class Place:
    """An agent with one running container, and the commands it was asked to run."""

    def __init__(self):
        self.sim = sim_world()
        self.orders = []
        self.command = Echo()
        self.folder = FOLDERS.attempt(UID, "main", 0)
        self.app = kubelet_over(self.sim, {("team", "demo"): pod(container())}, run=self.run, launch=self.launch)

    async def begin(self):
        self.sim.files.make_folder(self.folder)
        self.sim.files.write(self.folder / shim.INTENT, b"{}")
        await self.sim.processes.start(self.folder)

    async def launch(self, _pod, _container):
        environment = Environment(name="e", path=("/usr/bin",), env=(), folders=())
        return ContainerConfig(
            hostname="demo",
            environment=environment,
            env=(("A", "1"),),
            command=("train",),
            mounts=(),
            hosts=self.folder,
            message=self.folder,
            working_dir="/work",
            user=User(uid=7, gid=8),
        )

    async def run(self, order):
        self.orders.append(order)
        if isinstance(self.command, Exception):
            raise self.command
        return self.command


@pytest.fixture
async def place():
    place = Place()
    await place.begin()
    return place


def status(client):
    return json.loads(client.on(3))


async def test_a_command_hears_and_is_heard_and_its_end_is_told(place):
    async with line(place.app, EXEC, ALL) as client:
        client.say(0, b"hello")
        await client.heard(1)
        client.say(255, CLOSE_INPUT)

    assert client.sent[0] == {"type": "websocket.accept", "subprotocol": V5}
    assert client.sent[1] == {"type": "websocket.send", "bytes": b"\x01"}
    assert client.on(1) == b"hello"
    assert status(client) == {"metadata": {}, "status": "Success"}
    assert client.sent[-1] == {"type": "websocket.close", "code": 1000}
    assert place.command.closed


async def test_a_command_has_the_containers_environment_folder_and_user(place):
    async with line(place.app, EXEC, ALL) as client:
        client.say(255, CLOSE_INPUT)

    (order,) = place.orders
    assert order.argv == ("sh", "-c")
    assert (order.folder, order.user) == ("/work", User(uid=7, gid=8))
    assert dict(order.env) == {"PATH": "/usr/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "HOSTNAME": "demo", "A": "1"}
    assert (order.has_input, order.has_terminal) == (True, False)


async def test_an_exit_code_is_told_as_kubernetes_tells_it(place):
    place.command = Echo(code=3)
    async with line(place.app, EXEC, ALL) as client:
        client.say(255, CLOSE_INPUT)

    told = status(client)
    assert (told["status"], told["reason"]) == ("Failure", "NonZeroExitCode")
    assert told["details"] == {"causes": [{"reason": "ExitCode", "message": "3"}]}


async def test_a_command_that_is_not_there_is_told_on_the_line(place):
    place.command = ExecError('exec: "nope": executable file not found in $PATH')
    async with line(place.app, EXEC, ALL) as client:
        pass

    assert status(client)["message"] == (
        "Internal error occurred: error executing command in container: failed to exec in container: "
        'exec: "nope": executable file not found in $PATH'
    )


async def test_only_the_outputs_that_were_asked_for_are_sent(place):
    place.command = Echo(pieces=[(STDOUT, b"out"), (STDERR, b"err"), None])
    async with line(place.app, EXEC, [("command", "sh"), ("stderr", "true")]) as client:
        pass

    assert (client.on(1), client.on(2)) == (b"", b"err")


async def test_a_stream_that_is_said_not_to_be_wanted_is_not_sent(place):
    place.command = Echo(pieces=[(STDOUT, b"out"), (STDERR, b"err"), None])
    async with line(place.app, EXEC, [("command", "sh"), ("stdout", "false"), ("stderr", "1"), ("tty", "0")]) as client:
        pass

    assert (client.on(1), client.on(2)) == (b"", b"err")


async def test_a_terminal_has_one_output_and_a_size(place):
    place.command = Echo(pieces=[(STDOUT, b"$ ")])
    async with line(place.app, EXEC, [*ALL, ("tty", "true")]) as client:
        client.say(4, b'{"Width":80,"Height":24}')
        client.say(4, b'{"Width":-1,"Height":24}')
        client.say(4, b"nonsense")
        client.say(255, CLOSE_INPUT)

    assert place.command.sizes == [(80, 24)]
    assert place.orders[0].has_terminal
    assert ("TERM", "xterm") in place.orders[0].env


async def test_a_client_that_hangs_up_ends_its_command(place):
    async with line(place.app, EXEC, ALL) as client:
        client.say(0, b"are you there?")
        await client.heard(1)
        client.hang_up()

    assert place.command.closed
    assert client.on(3) == b""


async def test_before_version_5_the_number_255_says_nothing(place):
    async with line(place.app, EXEC, ALL, [V4]) as client:
        client.say(255, CLOSE_INPUT)
        client.say(0, b"still heard")
        await client.heard(1)
        client.hang_up()

    assert client.sent[0]["subprotocol"] == V4
    assert client.on(1) == b"still heard"


async def test_what_only_takes_text_is_spoken_to_in_base64(place):
    async with line(place.app, EXEC, ALL, ["v4.base64.channel.k8s.io"]) as client:
        client.say_text("0" + base64.b64encode(b"hi").decode())
        client.say_text("0!!")
        client.say_text("")
        await client.told("1" + base64.b64encode(b"hi").decode())
        place.command.end_input()

    last = [each["text"] for each in client.sent if "text" in each][-1]
    assert (last[0], json.loads(base64.b64decode(last[1:]))["status"]) == ("3", "Success")


async def denied(place, path, query=(), protocols=(V5,)):
    async with line(place.app, path, query, protocols) as client:
        pass
    head, body = client.sent
    assert head["type"] == "websocket.http.response.start"
    return head["status"], body["body"].decode()


async def test_who_offers_no_way_of_talking_that_is_known_is_refused(place):
    code, body = await denied(place, EXEC, ALL, ["v9.channel.k8s.io"])

    assert (code, V5 in body) == (400, True)
    assert place.orders == []


REFUSED = {
    "no command": (EXEC, [("stdout", "1")], 400, "you must specify at least one command for the container"),
    "no stream": (EXEC, [("command", "ls")], 400, "you must specify at least 1 of stdin, stdout, stderr"),
    "no such pod": ("/exec/team/no/main", ALL, 404, 'pods "no" not found'),
    "input to a container": (ATTACH, [("stdin", "1")], 400, "use exec"),
}


@pytest.mark.parametrize(("path", "query", "code", "said"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_opened_is_refused_with_a_status(place, path, query, code, said):
    status, body = await denied(place, path, query)

    assert status == code
    assert said in json.loads(body)["message"]


async def test_a_container_that_does_not_run_is_told_of_in_a_kubelets_words(place):
    place.sim.processes.finish(place.folder, 0)

    for path in (EXEC, "/exec/team/demo/no", ATTACH):
        why = f'container not found ("{path.rpartition("/")[2]}")'
        async with line(place.app, path, ALL[:2] + ALL[3:]) as client:
            pass
        told = status(client)
        assert (told["reason"], told["code"]) == ("InternalError", 500)
        assert told["message"] == f"Internal error occurred: unable to upgrade connection: {why}"
        assert (await ask(place.app, path, "command=ls&stdout=true", method="POST"))[1].decode() == why


async def test_without_a_websocket_the_same_is_checked_and_then_one_asked_for(place):
    query = "command=ls&stdout=true"
    assert (await ask(place.app, "/exec/team/no/main", query, method="POST"))[0] == 404

    wanted = scope_of(EXEC, query, method="POST", headers=[(b"upgrade", b"SPDY/3.1")])
    spdy = await answer_to(place.app, wanted)
    plain = await ask(place.app, EXEC, query)

    assert (spdy[0], "SPDY is not supported" in spdy[1].decode()) == (400, True)
    assert (plain[0], "Upgrade request required" in plain[1].decode()) == (400, True)


async def test_attaching_shows_what_is_written_from_now_on_to_the_end(place):
    say, files = place.sim.processes.say, place.sim.files
    say(place.folder, "before")
    size = files.size(place.folder / shim.LOG)
    assert size

    async with line(place.app, ATTACH, [("stdout", "1"), ("stderr", "1")]) as client:
        await client.accepted()
        say(place.folder, "after")
        say(place.folder, "oh", stream="stderr")
        await client.heard(2)
        place.sim.processes.finish(place.folder, 0)

    assert (client.on(1), client.on(2)) == (b"after\n", b"oh\n")
    assert status(client)["status"] == "Success"


async def test_a_client_that_detaches_leaves_the_container_alone(place):
    async with line(place.app, ATTACH, [("stdout", "1")]) as client:
        await client.accepted()
        client.hang_up()

    assert place.sim.processes.holds(place.folder)


@pytest.mark.parametrize("leaves_at", ["websocket.accept", "websocket.send", "websocket.close"])
async def test_a_client_that_has_just_left_is_no_failure_and_its_command_ends(place, leaves_at):
    place.command = Echo(pieces=[(STDOUT, b"out"), None])

    async with line(place.app, EXEC, ALL) as client:
        client.leaves_at = leaves_at
        client.hang_up()

    assert place.command.closed or not place.orders
