"""Every link between our files leads somewhere: files, anchors and images.

In     all Markdown files.
Out    links to files or headings that do not exist.
Never  asks the network: addresses of others are not followed.
"""

import re
from functools import cache

import pytest
from tests.docs.blocks import ROOT, headings_of, links_of, pages, prose_of

PAGES = pages()
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def plain(heading):
    """Return a heading as it is shown: links and code without their signs."""
    return re.sub(r"[`*]", "", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)).strip()


def anchor_of(heading):
    """Return the anchor that GitHub, GitLab and the site (`slugify` in mkdocs.yml) give to a heading."""
    return re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", plain(heading).lower()))


@cache
def anchors(page):
    return {anchor_of(heading) for heading in headings_of(page)}


def problem_of(page, link):
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return "there is no such file"
    if not target.is_relative_to(ROOT):
        return "leads out of the repository"
    if page.is_relative_to(ROOT / "docs") and not target.is_relative_to(ROOT / "docs"):
        return "leads out of docs/: the site would not have it"
    if page.is_relative_to(ROOT / "docs") and target.is_dir():
        return "leads to a folder: the site would not have it; name its README.md"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return "there is no such heading"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_somewhere(page):
    wrong = [f"line {line}: {link}: {text}" for line, link in links_of(page) if (text := problem_of(page, link))]

    assert wrong == []


def test_there_are_links_to_follow():
    assert sum(1 for page in PAGES for _ in links_of(page)) > 100


@pytest.mark.parametrize("page", [page for page in PAGES if ".github" not in page.parts])
def test_a_page_has_one_title(page):
    assert len(re.findall(r"^# .", prose_of(page), re.MULTILINE)) == 1
