"""What a server says is read as who must act."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.client.interface import Change
from paceline.client.requests import Response
from paceline.client.responses import Lines, error_of, read_event, read_object, read_page, warnings_of
from paceline.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Fault,
    Forbidden,
    HostError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServiceUnavailable,
    TooLarge,
    Unauthorized,
    UnsupportedMediaType,
)


def status(code, reason, message="what the server said", **details):
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return Response(status=code, body=orjson.dumps(body))


CASES = {
    "a taken name": (status(409, "AlreadyExists"), AlreadyExists),
    "a changed object": (status(409, "Conflict"), Conflict),
    "a missing object": (status(404, "NotFound"), NotFound),
    "history that is gone, in the newer word": (status(410, "Expired"), Expired),
    "history that is gone, in the older word": (status(410, "Gone"), Expired),
    "a body that cannot be read": (status(400, "BadRequest"), BadRequest),
    "no valid token": (status(401, "Unauthorized"), Unauthorized),
    "not allowed": (status(403, "Forbidden"), Forbidden),
    "a verb that is not there": (status(405, "MethodNotAllowed"), MethodNotAllowed),
    "too much": (status(413, "RequestEntityTooLarge"), TooLarge),
    "a content type nobody reads": (status(415, "UnsupportedMediaType"), UnsupportedMediaType),
    "too many requests": (status(429, "TooManyRequests"), ServiceUnavailable),
    "a server that takes too long": (status(504, "Timeout"), ServiceUnavailable),
    "a server that starts": (status(503, "ServiceUnavailable"), ServiceUnavailable),
    "a server that is broken": (status(500, "InternalError"), HostError),
    "a database that has a moment": (status(500, ""), ServiceUnavailable),
    "a reason nobody knows goes by its code": (status(404, "Whatever"), NotFound),
}


@pytest.mark.parametrize(("response", "expected"), CASES.values(), ids=CASES)
def test_errors(response, expected):
    error = error_of(response)

    assert type(error) is expected
    assert str(error) == "what the server said"


def test_a_proxy_that_speaks_no_kubernetes_is_quoted():
    error = error_of(Response(status=502, body=b"<html>Bad Gateway</html>"))

    assert isinstance(error, ServiceUnavailable)
    assert str(error) == "the server answered 502 and said: <html>Bad Gateway</html>"


CAUSES = {
    "a number": ("Invalid value: 0: must be at least 1", 0, "must be at least 1"),
    "a text with a colon": ('Invalid value: "a: b": no colons', "a: b", "no colons"),
    "an object": ('Invalid value: {"a": [1]}: too deep', {"a": [1]}, "too deep"),
    "a choice": (
        'Unsupported value: "Sometimes": supported values: "Always", "Never"',
        "Sometimes",
        'supported values: "Always", "Never"',
    ),
    "a missing one": ("Required value", None, "required value"),
    "a missing one with a hint": ("Required value: name the image", None, "name the image"),
    "one that is there twice": ('Duplicate value: "x"', "x", "duplicate value"),
    "one that may not be": ("Forbidden: cannot be changed", None, "cannot be changed"),
    "a value that is no JSON": ("Invalid value: map[a:1]: bad", None, "map[a:1]: bad"),
    "a hint that begins like JSON": ("Forbidden: 3 of them are too many", None, "3 of them are too many"),
    "another server's words": ("must not be so", None, "must not be so"),
}


@pytest.mark.parametrize(("message", "value", "hint"), CAUSES.values(), ids=CAUSES)
def test_an_invalid_object_gets_its_faults_back(message, value, hint):
    causes = [{"reason": "FieldValueInvalid", "field": "spec.x", "message": message}]

    error = error_of(status(422, "Invalid", 'GenericJob "demo" is invalid', name="demo", causes=causes))

    assert isinstance(error, Invalid)
    assert error.faults == (Fault("spec.x", value, hint),)
    assert str(error) == 'GenericJob "demo" is invalid'


def test_an_answer_that_is_no_json_is_the_servers_fault():
    with pytest.raises(HostError, match="not JSON"):
        read_object(Response(status=200, body=b"hello"))


def test_items_of_a_list_know_what_they_are():
    """Lists of built-in kinds say it only once, for the whole."""
    body = {
        "apiVersion": "v1",
        "kind": "PodList",
        "metadata": {"resourceVersion": "9", "continue": "more"},
        "items": [{"metadata": {"name": "a"}}],
    }

    page = read_page(Response(status=200, body=orjson.dumps(body)))

    assert page.items == ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},)
    assert (page.revision, page.next) == ("9", "more")


def test_an_empty_list_may_be_null():
    body = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": None}

    assert read_page(Response(status=200, body=orjson.dumps(body))).items == ()


def test_an_event_is_a_change_and_an_object():
    event = read_event(b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "4"}}}')

    assert event.change is Change.BOOKMARK
    assert event.object["metadata"]["resourceVersion"] == "4"


def test_an_error_event_is_raised_as_the_error_it_carries():
    line = orjson.dumps({"type": "ERROR", "object": orjson.loads(status(410, "Expired").body)})

    with pytest.raises(Expired, match="what the server said"):
        read_event(line)


@pytest.mark.parametrize("line", [b'{"type": "HELLO", "object": {}}', b'{"type": ["ADDED"]}', b"{}", b"[]"])
def test_an_event_that_is_none_is_the_servers_fault(line):
    with pytest.raises(HostError, match="the server"):
        read_event(line)


def test_warnings_are_collected():
    headers = (
        ("content-type", "application/json"),
        ("warning", '299 - "unknown field \\"spec.x\\""'),
        ("warning", '299 - "first", 299 kube "second"'),
    )

    assert warnings_of(Response(status=200, headers=headers)) == ('unknown field "spec.x"', "first", "second")


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_are_the_same_however_the_stream_is_cut(lines, data):
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    reader = Lines()

    assert [line for chunk in chunks for line in reader.feed(chunk)] == lines


def test_half_a_line_is_not_a_line():
    assert list(Lines().feed(b'{"type": "ADD')) == []
