"""The examples of the repository as starting points: `GET /api/examples`."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.yaml_reader import read_documents
from paceline.console.responses import json_response
from paceline.kinds.registry import every_kind

# A wheel carries the examples; in the repository they are at its root.
_FOLDERS = (Path(__file__).parents[1] / "examples", Path(__file__).parents[4] / "examples")
_TITLE = "# Teaches:"


@cache
def examples() -> tuple[Object, ...]:
    """Return the examples that people can create in the browser, each with its text; none if they are not there."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    if folder is None:
        return ()
    files = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.glob("*/*.yaml")}
    return tuple(example for file, text in sorted(files.items()) for example in _example(file, text, files))


def _example(file: str, text: str, files: dict[str, str]) -> Iterator[Object]:
    objects = [document.value for document in read_documents(text, file)]
    kinds = [str(obj.get("kind") or "") for obj in objects]
    if not kinds or kinds[0] not in {kind.kind for kind in every_kind()}:
        return
    claim = f"{file.rpartition('/')[0]}/claim.yaml"
    yield {
        "id": file.removesuffix(".yaml"),
        "kind": kinds[0],
        "name": name_of(objects[0]),
        "title": _title(text),
        "text": text,
        # The claim that the example needs, if its folder has one and its text names it.
        "claim": files[claim] if claim in files and _uses_claim(text) else "",
    }


def _uses_claim(text: str) -> bool:
    return any(mark in text for mark in ("claimName:", "storageName:", "t9k://pvc/", "pvc:"))


def _title(text: str) -> str:
    """Return what an example teaches, as its first line says."""
    first = text.partition("\n")[0]
    return first.removeprefix(_TITLE).removeprefix("#").strip()


async def _list(_request: Request) -> Response:
    return json_response({"examples": examples()})


ROUTES: tuple[BaseRoute, ...] = (Route("/api/examples", _list),)
