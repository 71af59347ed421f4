"""A cache never goes back in time, and everybody is told everything."""

from hypothesis import given
from hypothesis import strategies as st

from paceline.client.informer import Cache
from paceline.client.interface import Change


def test_what_is_newer_stays(pod):
    cache = Cache()
    cache.offer(pod("a", 10))
    cache.offer(pod("a", 9))

    assert cache["team", "a"] == pod("a", 10)


def test_revisions_are_numbers_not_texts(pod):
    cache = Cache()
    cache.offer(pod("a", 9))
    cache.offer(pod("a", 10))

    assert cache["team", "a"] == pod("a", 10)


def test_revisions_that_are_no_numbers_are_taken_as_they_come(pod):
    cache = Cache()
    cache.offer(pod("a", "xyz"))
    cache.offer(pod("a", "abc"))

    assert cache["team", "a"] == pod("a", "abc")


def test_another_object_by_the_same_name_is_an_end_and_a_beginning(pod):
    told = []
    cache = Cache()
    cache.listen(lambda change, old, new: told.append((change, old, new)))
    first, second = pod("a", 1, uid="one"), pod("a", 5, uid="two")
    cache.offer(first)
    cache.offer(second)

    assert told == [
        (Change.ADDED, None, first),
        (Change.DELETED, first, None),
        (Change.ADDED, None, second),
    ]


def test_a_late_listener_learns_what_is_there(pod):
    told = []
    cache = Cache()
    cache.offer(pod("a", 1))
    cache.listen(lambda change, _old, new: told.append((change, new)))

    assert told == [(Change.ADDED, pod("a", 1))]


def test_an_object_changes_hands(pod):
    cache = Cache()
    cache.offer(pod("a", 1, owner="one"))
    cache.offer(pod("b", 2, owner="one"))
    cache.offer(pod("a", 3, owner="two"))

    assert cache.owned("one") == (pod("b", 2, owner="one"),)
    assert cache.owned("two") == (pod("a", 3, owner="two"),)
    assert cache.owned("nobody") == ()


STEPS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(1, 30),
        st.sampled_from(["", "one", "two"]),
        st.sampled_from(["offer", "accept", "drop"]),
    ),
    max_size=30,
)


@given(steps=STEPS)
def test_who_only_listens_knows_as_much_as_who_looks(steps):
    """Handlers see changes that fit together, and the index by owner is the objects' own."""
    cache, told = Cache(), {}

    def listen(change, old, new):
        known = new if new is not None else old
        key = known["metadata"]["namespace"], known["metadata"]["name"]
        assert (key in told) == (change is not Change.ADDED)
        if change is Change.DELETED:
            del told[key]
        else:
            assert told.get(key) == old
            told[key] = new

    cache.listen(listen)
    for name, revision, owner, how in steps:
        meta = {"namespace": "team", "name": name, "uid": "u", "resourceVersion": str(revision)}
        if owner:
            meta["ownerReferences"] = [{"uid": owner, "controller": True}]
        if how == "drop":
            cache.drop(("team", name))
        else:
            getattr(cache, how)({"metadata": meta})

        assert dict(cache) == told
        for uid in ("one", "two"):
            owners = [obj["metadata"].get("ownerReferences", [{}])[0].get("uid") for obj in cache.values()]
            assert len(cache.owned(uid)) == owners.count(uid)


def test_an_index_follows_every_change(pod):
    cache = Cache()
    cache.index("revision", lambda obj: (obj["metadata"]["resourceVersion"], "any"))
    cache.offer(pod("a", 1))
    cache.offer(pod("b", 1))
    cache.offer(pod("a", 2))

    assert cache.having("revision", "1") == (pod("b", 1),)
    assert cache.having("revision", "2") == (pod("a", 2),)
    assert cache.count("revision", "any") == 2

    cache.drop(("team", "a"))
    cache.drop(("team", "b"))

    assert cache.having("revision", "any") == ()
    assert cache.count("revision", "2") == 0
