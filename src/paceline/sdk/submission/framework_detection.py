"""Chooses the framework of a training by what its code imports, directly or through modules in the same folder."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MODULE = r"[A-Za-z_][\w.]*"
# Read as text: code for another version of Python must be understood, too.
IMPORTS = re.compile(rf"^[ \t]*(?:from[ \t]+({MODULE})[ \t]+import\b|import[ \t]+([^#;\n]+))", re.MULTILINE)
FRAMEWORKS = {"torch": "pytorch", "tensorflow": "tensorflow", "keras": "keras"}
# Packages whose scripts often do not import the framework themselves.
LIBRARIES = {
    "accelerate": "pytorch",
    "deepspeed": "pytorch",
    "fastai": "pytorch",
    "lightning": "pytorch",
    "peft": "pytorch",
    "pytorch_lightning": "pytorch",
    "tensorflow_datasets": "tensorflow",
    "tf_keras": "tensorflow",
    "timm": "pytorch",
    "torchvision": "pytorch",
    "transformers": "pytorch",
    "trl": "pytorch",
}
# More code than this is not looked through.
MAX_FILES = 200
MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """A module that a file imports."""

    module: str
    file: Path

    @property
    def package(self) -> str:
        """Return the name of its outermost package."""
        return self.module.partition(".")[0]


def framework_of(path: str, command: str) -> tuple[str, str]:
    """Return the framework of a script, or of the scripts that a command runs in a folder, and why it was chosen."""
    root = Path(path) if Path(path).is_dir() else Path(path).parent
    scripts = [root / word for word in command.split() if word.endswith(".py")] if Path(path).is_dir() else [Path(path)]
    imports = tuple(imports_of(scripts, root))
    for table in (FRAMEWORKS, LIBRARIES):
        for found in imports:
            if found.package in table:
                subject = "it" if found.file in scripts else found.file.relative_to(root)
                return table[found.package], f"{subject} imports {found.package}"
    return "python", "it imports none of torch, tensorflow and keras"


def imports_of(scripts: list[Path], root: Path) -> Iterator[Import]:
    """Yield what scripts import, then what the modules of their folder import that they use."""
    queue, done = list(scripts), set[Path]()
    while queue and len(done) < MAX_FILES:
        file = queue.pop(0)
        if file in done or not file.is_file():
            continue
        done.add(file)
        with file.open(errors="replace") as stream:
            text = stream.read(MAX_CHARACTERS)
        for module in modules_in(text):
            yield Import(module=module, file=file)
            place = root.joinpath(*module.split("."))
            queue += (place.with_name(f"{place.name}.py"), place / "__init__.py")


def modules_in(text: str) -> Iterator[str]:
    """Yield the names of the modules that a program imports."""
    for match in IMPORTS.finditer(text):
        for clause in (match[1] or match[2]).split(","):
            if words := clause.split():
                yield words[0]
