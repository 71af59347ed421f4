"""The house limits: how large a file, a function and a signature may be, and how a package introduces itself.

In     every Python file of the repository.
Out    one line per broken limit, with the number and the limit.
Never  a limit raised for all because one place needs it: that place goes into EXCEPTIONS, with a reason.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "tools", "examples", "bench")

FILE_LINES = 500
FUNCTION_LINES = 50
PARAMETERS = 5

# Names where things pile up. The function moves to the noun it serves.
PILES = re.compile(r"(^|_)(utils?|helpers?|common|managers?|base|core|misc)$")

# "path" or "path::function": why it may break a limit, and who looks after it. It may only shrink.
EXCEPTIONS: dict[str, str] = {}


@cache
def files():
    """Every Python file, by its path from the root."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}


@cache
def functions():
    """Every function, as "path::Class.name"; nested ones too."""
    return {name: node for file, text in files().items() for name, node in functions_in(ast.parse(text), f"{file}::")}


def functions_in(tree, prefix):
    for node in ast.iter_child_nodes(tree):
        name = f"{prefix}{node.name}" if hasattr(node, "name") and hasattr(node, "body") else prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, node
        yield from functions_in(node, name if name == prefix else f"{name}.")


def lines_of(function):
    """Its length without the docstring: explaining is free."""
    first = function.body[0]
    has_docstring = ast.get_docstring(function, clean=False) is not None
    explained = first.end_lineno - first.lineno + 1 if has_docstring else 0
    return function.end_lineno - function.lineno + 1 - explained


def parameters_of(function):
    if function.name.startswith("test_"):
        return 0  # Fixtures and cases, not a signature.
    args = function.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])


def measured():
    """Every measured thing: its name, how large it is, its limit, and the unit."""
    for file, text in files().items():
        yield file, len(text.splitlines()), FILE_LINES, "lines"
    for name, function in functions().items():
        yield name, lines_of(function), FUNCTION_LINES, "lines without its docstring"
        yield name, parameters_of(function), PARAMETERS, "parameters without self"


def test_files_functions_and_signatures_are_small():
    """A file that holds the product, or a function that does it all, starts as one line too many."""
    wrong = [
        f"{name} has {size} {unit}; the limit is {limit}"
        for name, size, limit, unit in measured()
        if size > limit and name not in EXCEPTIONS
    ]

    assert not wrong, "\n".join(wrong)


def test_every_exception_is_still_needed():
    too_large = {name for name, size, limit, _ in measured() if size > limit}

    wrong = [name for name in EXCEPTIONS if name not in too_large]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("label", ["In", "Out", "Never"])
def test_every_package_says_what_goes_in_what_comes_out_and_what_it_never_does(label):
    """If you cannot fill in `Never`, the package has no border yet."""
    headers = {
        file: ast.get_docstring(ast.parse(text)) or ""
        for file, text in files().items()
        if file.startswith("src/") and file.endswith("/__init__.py")
    }

    wrong = [file for file, header in headers.items() if not re.search(rf"^{label}\b +\S", header, re.MULTILINE)]

    assert not wrong, "\n".join(wrong)


def test_every_folder_of_the_product_is_a_package():
    folders = {file.rpartition("/")[0] for file in files() if file.startswith("src/")}

    wrong = [folder for folder in folders if f"{folder}/__init__.py" not in files()]

    assert not wrong, "\n".join(wrong)


def test_no_name_invites_a_pile():
    names = {part.removesuffix(".py"): file for file in files() for part in file.split("/")}

    wrong = [file for name, file in names.items() if PILES.search(name)]

    assert not wrong, "\n".join(wrong)


def test_no_class_is_a_manager():
    wrong = [
        f"{file}: {node.name}"
        for file, text in files().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and re.search(r"(Manager|Helper|Utils?)$|^(Base|Abstract)", node.name)
    ]

    assert not wrong, "\n".join(wrong)


def test_no_test_sleeps():
    """A sleep is too long on a fast machine and too short on a slow one; wait for the world, with a deadline."""
    wrong = [
        f"{file}:{node.lineno}"
        for file, text in files().items()
        if re.search(r"^tests/.*(test_\w+|conftest)\.py$", file)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep"
    ]

    assert not wrong, "\n".join(wrong)
