"""A hook of MkDocs: an entry of `nav` that ends with a slash stands for every page of that folder, its README first.

In     `nav` of mkdocs.yml, and the folders below docs/.
Out    `nav` with every page in it, so that a new kind or decision needs no second list.
Never  changes a page.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Called by MkDocs before it reads the pages."""
    config["nav"] = list(with_folders(config["nav"], Path(config["docs_dir"])))
    return config


def with_folders(entries: list[Any], docs: Path) -> Iterator[Any]:
    """Yield the entries of the navigation, with the pages of a folder in the folder's place."""
    for entry in entries:
        if isinstance(entry, str) and entry.endswith("/"):
            pages = sorted((docs / entry).glob("*.md"), key=lambda page: (page.stem != "README", page.stem))
            yield from (page.relative_to(docs).as_posix() for page in pages)
        elif isinstance(entry, dict):
            yield {
                title: list(with_folders(part, docs)) if isinstance(part, list) else part
                for title, part in entry.items()
            }
        else:
            yield entry
