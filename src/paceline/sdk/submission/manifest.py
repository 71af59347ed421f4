"""Reads objects from YAML with limits on size and structure; errors name the line."""

import sys
from collections.abc import Iterator
from pathlib import Path

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.yaml_reader import YamlDocument, read_documents
from paceline.errors import BadRequest, TooLarge
from paceline.sdk.submission.submit import Document, called, checked

MAX_BYTES = 1024 * 1024
STDIN = "-"


def read_file(path: str) -> tuple[Document, ...]:
    """Return all objects of a file (`-` is standard input); BadRequest or TooLarge say what to change, and where."""
    return read_text(read_bytes(path), "stdin" if path == STDIN else path)


def read_bytes(path: str) -> bytes:
    """Return the content of a YAML file or of standard input; raise BadRequest or TooLarge if it cannot be read."""
    if path == STDIN:
        return _limited(sys.stdin.buffer.read(MAX_BYTES + 1), "stdin")
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except IsADirectoryError as error:
        raise BadRequest(
            f"{path}: is a folder; specify the files in it, such as {path.rstrip('/')}/job.yaml"
        ) from error
    except FileNotFoundError as error:
        raise BadRequest(f"{path}: no such file{_similar_file(path)}") from error
    except OSError as error:
        raise BadRequest(f"{path}: cannot be read: {error.strerror}") from error
    return _limited(data, path)


def read_text(data: bytes, source: str) -> tuple[Document, ...]:
    """Return all objects of a YAML text; `source` is its name in messages."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadRequest(
            f"{source}:{line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from error
    documents = [document for tree in read_documents(text, source) for document in _objects(tree, source)]
    if not documents:
        raise BadRequest(f"{source}: contains no object; it should begin with apiVersion, kind and metadata")
    return tuple(documents)


def _limited(data: bytes, source: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise TooLarge(
            f"{source}: the file is larger than {MAX_BYTES // 1024**2} MiB; "
            "a manifest takes a few KiB: put data on a claim"
        )
    return data


def _similar_file(path: str) -> str:
    try:
        names = [entry.name for entry in Path(path).parent.iterdir()]
    except OSError:
        return ""
    near = nearest(Path(path).name, names)
    return f"; did you mean {Path(path).parent / near}?" if near else ""


def _objects(tree: YamlDocument, source: str) -> Iterator[Document]:
    """Yield the objects of one YAML document: the document itself, or the items of a List."""
    value = tree.value
    if not isinstance(value, dict):
        raise BadRequest(f"{source}:{tree.line}: {called(value)} is not an object; {_instead(value)}")
    if value.get("kind") == "List" and isinstance(value.get("items"), list):
        for number, item in enumerate(value["items"]):
            place = f"{source}:{tree.line}: items[{number}]"
            if not isinstance(item, dict):
                raise BadRequest(f"{place}: {called(item)} is not an object")
            yield Document(object=checked(item, place), place=place)
        return
    place = f"{source}:{tree.line}"
    yield Document(object=checked(value, place), place=place)


def _instead(value: object) -> str:
    if isinstance(value, list):
        return "each object is a mapping, and a line with --- separates them"
    return "it should be a mapping that begins with apiVersion, kind and metadata"
