"""Counts vague bindings, crowded folders, class names that are defined twice, and long commit subjects.

In     the Python files of src/, and the subjects of the commits since a revision.
Out    one table of figures; with --list PATH, the figures of that path and every place behind them.
Never  fails a build: the figures are a mirror, not a gate. A place listed is one to look at, not an error.
"""

import argparse
import ast
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

# Words that do not say what a variable holds; a noun does (`pod`, `fault`, `message`).
VAGUE = frozenset(
    (
        *("after", "asked", "before", "each", "found", "given", "held", "kept", "known"),
        *("left", "made", "meant", "more", "own", "rest", "said", "there", "told"),
        *("wanted", "way", "what", "who", "whole", "why", "wish", "words", "wrong"),
    )
)
MODULES_PER_FOLDER = 20
SUBJECT_LENGTH = 72
# The last commit before subjects had to be imperative and short.
SINCE = "f0dc5da"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table, and the places behind it."""

    name: str
    count: int
    total: str
    places: tuple[str, ...]


def main() -> None:
    """Print the table; with --list, also the places."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--since", metavar="REV", default=SINCE, help="check the commit subjects after REV (default: %(default)s)"
    )
    parser.add_argument(
        "--list", metavar="PATH", type=Path, help="measure only this file or folder, and list the places"
    )
    options = parser.parse_args()
    modules = _modules(options.list.resolve() if options.list else SOURCE)
    figures = (
        vague_bindings(modules),
        crowded_folders(modules),
        repeated_classes(modules),
        long_subjects(options.since),
    )
    for figure in figures:
        print(f"{figure.name:<34} {figure.count:>6}   {figure.total}")
    if options.list:
        for figure in figures:
            for place in figure.places:
                print(place)


def vague_bindings(modules: dict[Path, ast.Module]) -> Figure:
    """Count the variables, parameters and fields whose name is a vague word."""
    places: list[str] = []
    total = 0
    for path, tree in modules.items():
        for name, line in _bindings(tree):
            total += 1
            if name.strip("_") in VAGUE:
                places.append(f"{_relative(path)}:{line}: {name}")
    share = f"{100 * len(places) / total:.2f} %" if total else "0 %"
    return Figure(name="vague bindings", count=len(places), total=f"{share} of {total}", places=tuple(places))


def crowded_folders(modules: dict[Path, ast.Module]) -> Figure:
    """Count the folders with too many modules; `__init__.py` is not one of them."""
    sizes = Counter(path.parent for path in modules if path.name != "__init__.py")
    places = tuple(
        f"{_relative(folder)}/: {size} modules" for folder, size in sizes.items() if size > MODULES_PER_FOLDER
    )
    name = f"folders over {MODULES_PER_FOLDER} modules"
    return Figure(name=name, count=len(places), total=f"of {len(sizes)}", places=places)


def repeated_classes(modules: dict[Path, ast.Module]) -> Figure:
    """Count the class names that are defined more than once in src/; places in the measured modules are listed."""
    definitions: dict[str, list[str]] = defaultdict(list)
    for path, tree in _modules(SOURCE).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                definitions[node.name].append(f"{_relative(path)}:{node.lineno}")
    measured = {_relative(path) for path in modules}
    places = tuple(
        f"{', '.join(lines)}: class {name}"
        for name, lines in sorted(definitions.items())
        if len(lines) > 1 and any(line.rpartition(":")[0] in measured for line in lines)
    )
    return Figure(name="class names defined twice", count=len(places), total=f"of {len(definitions)}", places=places)


def long_subjects(since: str) -> Figure:
    """Count the commits after a revision whose subject is too long; none where git does not know the revision."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%h %s", f"{since}..HEAD"]
    try:
        log = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    except OSError:
        log = []
    subjects = [line.partition(" ") for line in log]
    places = tuple(
        f"commit {commit}: {len(subject)} characters: {subject}"
        for commit, _, subject in subjects
        if len(subject) > SUBJECT_LENGTH
    )
    name = f"subjects over {SUBJECT_LENGTH} characters"
    return Figure(name=name, count=len(places), total=f"of {len(subjects)} since {since}", places=places)


def _modules(root: Path) -> dict[Path, ast.Module]:
    paths = [root] if root.is_file() else sorted(root.rglob("*.py"))
    return {path: ast.parse(path.read_text(), filename=str(path)) for path in paths}


def _bindings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield every name that the module binds to a value, with its line; not `self`, `cls` and `_`."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                pass
            case _:
                continue
        if name not in {"self", "cls", "_"}:
            yield name, node.lineno


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()


if __name__ == "__main__":
    main()
