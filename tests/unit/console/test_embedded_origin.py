"""The origin of a TensorBoard or notebook: its label, its paths and its redirects."""

import re

import pytest

from paceline.console.app_origins.origin import EmbeddedApp
from paceline.errors import BadRequest

BOARD = EmbeddedApp(kind="TensorBoard", namespace="default", name="mnist")
DESK = EmbeddedApp(kind="Notebook", namespace="default", name="desk")
BOARD_PROXY = "/api/v1/namespaces/default/services/tb-mnist:http/proxy"
DESK_PROXY = "/api/v1/namespaces/default/services/nb-desk:http/proxy"
DESK_PAGES = "/t9k/notebooks/projects/default/name/desk"


def test_the_label_names_the_app_and_is_a_dns_label() -> None:
    assert re.fullmatch(r"tb-mnist-[0-9a-f]{8}", BOARD.label)
    assert re.fullmatch(r"nb-desk-[0-9a-f]{8}", DESK.label)
    for name in ("a" * 63, "x.y.z", "-", "a" * 50 + "-b"):
        label = EmbeddedApp(kind="TensorBoard", namespace="default", name=name).label
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", label)
        assert len(label) <= 63


def test_apps_that_differ_have_labels_that_differ() -> None:
    pairs = [("TensorBoard", "a", "x"), ("Notebook", "a", "x"), ("TensorBoard", "b", "x"), ("TensorBoard", "a", "y")]
    long = [("TensorBoard", "a", "x" * 60 + end) for end in ("1", "2")]

    labels = {EmbeddedApp(kind=kind, namespace=place, name=name).label for kind, place, name in (*pairs, *long)}

    assert len(labels) == 6


def test_no_other_kind_is_opened() -> None:
    with pytest.raises(BadRequest, match="must be one of TensorBoard, Notebook"):
        EmbeddedApp(kind="Pod", namespace="default", name="x")


def test_tensorboard_is_served_at_the_root_and_jupyterlab_below_its_prefix() -> None:
    assert (BOARD.front, DESK.front) == ("/", f"{DESK_PAGES}/lab")
    assert BOARD.target("/data/runs", "tag=a%2Fb") == f"{BOARD_PROXY}/data/runs?tag=a%2Fb"
    assert DESK.target(f"{DESK_PAGES}/api", "", "s&c") == f"{DESK_PROXY}{DESK_PAGES}/api?token=s%26c"
    assert DESK.target("/x", "a=1", "t") == f"{DESK_PROXY}/x?a=1&token=t"


def test_links_that_a_kubernetes_proxy_rewrote_lead_to_the_same_page() -> None:
    assert BOARD.target(f"{BOARD_PROXY}/data", "") == f"{BOARD_PROXY}/data"


@pytest.mark.parametrize(
    "path", ["/../x", "/a/../../b", "/%2e%2e/x", "/a/%2E%2E%2fb", "/a%2f..%2fb", "/..\\x", "/x/..", "x", ""]
)
def test_no_path_leaves_the_app(path: str) -> None:
    assert BOARD.target(path, "") is None


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (f"{DESK_PROXY}{DESK_PAGES}/lab?x=1", f"{DESK_PAGES}/lab?x=1"),
        (f"https://10.0.0.1:6443{DESK_PROXY}{DESK_PAGES}/tree", f"{DESK_PAGES}/tree"),
        ("lab/tree", "lab/tree"),
        ("http://paceline.localhost:7000/settings", "/settings"),
        ("https://evil.example/x?y#z", "/x?y#z"),
        ("//evil.example/x", "/x"),
        ("/\\evil.example/x", "/x"),
        ("\\\\evil.example/x", "/x"),
        ("/\t/evil.example/x", "/x"),
        ("///evil.example/x", "/evil.example/x"),
        ("javascript:alert(1)", "/alert(1)"),
        ("http://[", f"{DESK_PAGES}/lab"),
    ],
)
def test_redirects_stay_on_the_origin_of_the_app(location: str, expected: str) -> None:
    assert DESK.location(location) == expected


def test_a_redirect_does_not_show_the_token() -> None:
    assert DESK.location(f"{DESK_PAGES}/lab?token=t0&a=&b=2", "t0") == f"{DESK_PAGES}/lab?a=&b=2"
    assert DESK.location("/x?token=other", "t0") == "/x?token=other"
