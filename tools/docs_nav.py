"""A hook of MkDocs: an entry of `nav` that ends with a slash stands for every page of that folder, its README first.

In     `nav` of mkdocs.yml, and the folders below docs/.
Out    `nav` with every page in it, so that a new kind or decision needs no second list.
Never  changes a page.
"""

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Called by MkDocs before it reads the pages."""
    config["nav"] = [with_folders(entry, Path(config["docs_dir"])) for entry in config["nav"]]
    return config


def with_folders(entry: Any, docs: Path) -> Any:
    """Return an entry of the navigation with the pages of its folders."""
    if not isinstance(entry, dict):
        return entry
    ((title, value),) = entry.items()
    if isinstance(value, list):
        return {title: [with_folders(part, docs) for part in value]}
    if not value.endswith("/"):
        return entry
    pages = sorted((docs / value).glob("*.md"), key=lambda page: (page.stem != "README", page.stem))
    return {title: [page.relative_to(docs).as_posix() for page in pages]}
