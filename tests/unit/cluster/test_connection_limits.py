"""How many connections there may be, and which gives way."""

import resource

import pytest

from paceline.host.connection_limits import LOCAL, Bounds, ConnectionLimiter, peer_of

BOUNDS = Bounds(all=8, local=5, peer=3)


class Connections:
    """Enters connections and notes which of them were closed."""

    def __init__(self, bounds=BOUNDS):
        self.front = ConnectionLimiter(bounds)
        self.closed = []

    def enter(self, name, peer=LOCAL):
        place = self.front.acquire(peer)
        if place is not None:
            place.close = lambda: self.closed.append(name)
        return place


@pytest.fixture
def connections():
    return Connections()


def test_the_longest_silent_connection_gives_way_to_a_new_one(connections):
    for number in range(5):
        connections.enter(number)

    assert connections.enter("new") is not None
    assert connections.enter("newer") is not None
    assert connections.closed == [0, 1]


def test_connections_without_a_request_give_way_before_idle_ones(connections):
    idle = connections.enter("idle")
    idle.busy()
    idle.idle()
    for number in range(4):
        connections.enter(number)

    connections.enter("new")

    assert connections.closed == [0]


def test_a_request_under_way_is_never_cut_off(connections):
    places = [connections.enter(number) for number in range(5)]
    for place in places:
        place.busy()

    assert connections.enter("new") is None
    assert connections.closed == []
    places[2].release()
    assert connections.enter("new") is not None


def test_one_peer_does_not_take_the_places_of_another(connections):
    for number in range(20):
        connections.enter(number, peer="10.0.0.2")

    assert connections.front.count == 3
    assert all(connections.enter(f"local {number}") for number in range(5))
    assert connections.front.count == 8


def test_when_all_are_taken_the_largest_peer_gives_way(connections):
    for number in range(5):
        connections.enter(f"local {number}")
    for number in range(3):
        connections.enter(f"pod {number}", peer="10.0.0.2")

    assert connections.enter("new", peer="10.0.0.3") is not None
    assert connections.closed == ["local 0"]


def test_what_has_left_is_not_counted(connections):
    for number in range(100):
        place = connections.enter(number, peer=f"10.0.0.{number}")
        place.release()
        place.release()
        place.idle()

    assert connections.front.count == 0
    assert connections.front.peers == {}


def test_a_thousand_connections_are_replaced_one_by_one():
    connections = Connections(Bounds(all=1000, local=1000, peer=3))
    for number in range(3000):
        connections.enter(number)

    assert connections.closed == list(range(2000))


def test_the_bounds_leave_room_for_other_files(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    bounds = Bounds.of_process()

    assert bounds.all * 2 + 256 <= 1024
    assert bounds.local < bounds.all
    assert bounds.peer < bounds.all


@pytest.mark.parametrize(
    ("address", "peer"),
    [(("127.0.0.1", 5), LOCAL), (("127.9.9.9", 5), LOCAL), ("", LOCAL), (("10.1.2.3", 5), "10.1.2.3")],
)
def test_whatever_is_no_pod_is_local(address, peer):
    assert peer_of(address) == peer
