"""Where windows are opened, and the way there."""

import pytest

from paceline.model.interactive import is_front, page_path, proxy_path

BOARD = "/t9k/tensorboards/projects/ns/name/curves"
BY_PROXY = "/api/v1/namespaces/ns/services/tb-curves:http/proxy"
WAYS = {
    "a folder": (f"{BOARD}/", (f"{BY_PROXY}/", BOARD)),
    "anything below": (f"{BOARD}/a/b%2Fc", (f"{BY_PROXY}/a/b%2Fc", BOARD)),
    "no slash at the end": (BOARD, (BY_PROXY, BOARD)),
    "a kind that knows its path": (
        "/t9k/notebooks/projects/ns/name/x",
        ("/api/v1/namespaces/ns/services/nb-x:http/proxy/t9k/notebooks/projects/ns/name/x", ""),
    ),
    "a kind that is none": ("/t9k/rstudios/projects/ns/name/x/", None),
    "something before it": (f"/x{BOARD}/", None),
    "a name of several parts": ("/t9k/tensorboards/projects/a/b/name/x/", None),
    "the API": ("/api/v1/pods", None),
}


@pytest.mark.parametrize(("path", "way"), WAYS.values(), ids=WAYS)
def test_the_way_to(path, way):
    assert proxy_path(path) == way


@pytest.mark.parametrize("page", [f"{BOARD}/", f"{BOARD}/a/b", "/t9k/notebooks/projects/ns/name/x/lab"])
def test_both_forms_of_a_url_mean_one_page(page):
    target = proxy_path(page)
    assert target is not None
    assert page_path(target[0]) == page_path(page) == page


FRONTS = {"/": True, "": True, "/lab": True, "/api/status": False, "/data/runs": False, "/lab/api/settings": False}


@pytest.mark.parametrize(("rest", "is_one"), FRONTS.items())
def test_people_open(rest, is_one):
    assert is_front(f"{BOARD}{rest}") is is_one
    assert is_front(rest or "/") is is_one
