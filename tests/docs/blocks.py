"""Reads Markdown: fenced blocks, the commands in them, headings and links.

In     the text of a page.
Out    its blocks, commands, headings and links, each with its line.
Never  judges them, or runs a command: tests do.

A block's first word says what it is, and who checks it:

sh       commands, all of which must exist (test_blocks.py); tests/e2e/cli/test_guides.py runs whole pages and openings
console  a session: commands behind `$`, checked as above, and what they print
text     output, or anything else that nobody types
yaml     a whole object, checked as `paceline check` does; or, by its first line, `# settings.yaml`, or
         `# fragment: PATH`, a part of a job that is put there and checked
python   compiled
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
SUBSTITUTION = re.compile(r"[$<]\(([^()]*)\)")
PUNCTUATION = "();<>|&"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    info: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every Markdown file of the repository."""
    folders = ("*.md", "docs/**/*.md", "examples/**/*.md", "charts/**/*.md", ".github/**/*.md")
    return sorted(path for pattern in folders for path in ROOT.glob(pattern))


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in their order."""
    inside: list[str] | None = None
    start, info, fence, indent = 0, "", "", ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        match = FENCE.match(line)
        if inside is None and match:
            inside, start = [], number
            info, fence, indent = match["info"].strip(), match["fence"], match["indent"]
        elif inside is not None and match and match["fence"].startswith(fence) and not match["info"].strip():
            yield Block(page=page, line=start, info=info, text="".join(f"{text}\n" for text in inside))
            inside = None
        elif inside is not None:
            inside.append(line.removeprefix(indent))
    assert inside is None, f"{page}:{start}: the block does not end"


def prose_of(page: Path) -> str:
    """Return a page without its blocks; line numbers stay."""
    lines, fence = [], ""
    for line in page.read_text().splitlines():
        match = FENCE.match(line)
        if match and (not fence or match["fence"].startswith(fence)):
            fence = "" if fence else match["fence"]
            lines.append("")
        else:
            lines.append("" if fence else line)
    return "\n".join(lines)


def opening_of(page: Path) -> list[Block]:
    """Return the blocks before the first section of a page: the example that it starts with."""
    numbers = [number for number, line in enumerate(prose_of(page).splitlines(), 1) if line.startswith("## ")]
    return [block for block in blocks_of(page) if not numbers or block.line < numbers[0]]


def commands_of(block: Block) -> list[str]:
    """Return the commands of a block as typed: continued lines and here-documents are part of their command."""
    if block.info == "console":
        parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
        return [command for part in parts if (command := next(_commands(part.splitlines()), ""))]
    return list(_commands(block.text.splitlines())) if block.info == "sh" else []


def _commands(lines: list[str]) -> Iterator[str]:
    rest = iter(lines)
    for line in rest:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        command = [line]
        while command[-1].endswith("\\"):
            command.append(next(rest))
        for _, end in HEREDOC.findall("\n".join(command)):
            while command[-1] != end:
                command.append(next(rest))
        yield "\n".join(command)


def documents_in(command: str) -> Iterator[str]:
    """Yield the here-documents of a command."""
    lines = command.splitlines()
    for _, end in HEREDOC.findall(command):
        first = next(number for number, line in enumerate(lines) if HEREDOC.search(line))
        yield "\n".join(lines[first + 1 : lines.index(end, first + 1)]) + "\n"


def words_of(command: str) -> Iterator[list[str]]:
    """Yield the words of every program that a command line starts, without redirections and variables before it."""
    line = HEREDOC.sub("", command.splitlines()[0] if HEREDOC.search(command) else command.replace("\\\n", " "))
    for inner in SUBSTITUTION.findall(line):
        yield from words_of(inner)
    line = SUBSTITUTION.sub(" OUTPUT ", line)
    reader = shlex.shlex(line, posix=True, punctuation_chars=PUNCTUATION)
    reader.whitespace_split = True
    words: list[str] = []
    is_file = False
    for token in reader:
        if set(token) <= set("<>"):
            is_file = True
        elif is_file:
            is_file = False
        elif set(token) <= set(PUNCTUATION):
            yield from _program(words)
            words = []
        else:
            words.append(token)
    yield from _program(words)


def _program(words: list[str]) -> Iterator[list[str]]:
    while words and re.fullmatch(r"\w+=.*", words[0], re.DOTALL):
        words = words[1:]
    if words:
        yield words


def headings_of(page: Path) -> list[str]:
    """Return the headings of a page, without `#`."""
    return re.findall(r"^#{1,6} +(.*?)(?: +#+)?$", prose_of(page), re.MULTILINE)


def links_of(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the links and images of a page that lead to files of the repository, with their lines."""
    text = re.sub(r"`[^`\n]*`", lambda code: "x" * len(code[0]), prose_of(page))
    for match in re.finditer(r"\]\(<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\)|\b(?:src|href)=\"([^\"]+)\"", text):
        link = match[1] or match[2]
        if not re.match(r"[a-z][a-z0-9+.-]*:", link):
            yield text.count("\n", 0, match.start()) + 1, link
