"""What no two runs have in common is given one word: times, ages, ids, revisions, addresses, paths."""

import re
from collections.abc import Iterator, Sequence

from tests.kubectl.table import Case

AGE = r"(?:<unknown>|<invalid>|(?:\d+[ydhms])+)"
Rules = tuple[tuple[str, str], ...]
RULES: Rules = (
    # What kubectl's cache says of a watch that its own time limit cut is a matter of milliseconds.
    (r"(?m)^[EIW]\d{4} \S+ +\d+ reflector\.go:\d+\] .*\n", ""),
    # klog's own line head: severity, date, time, process, place in the source.
    (r"(?m)^([EWIF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\S+?):\d+\]", r"\1<log> \2]"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?", "<time>"),
    (r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r'(resourceVersion\\?"?: ?\\?")\d+(\\?")', r"\1<revision>\2"),
    (r"(?m)^( *Resource Version: +)\d+$", r"\1<revision>"),
    (r"https?://(?:127\.0\.0\.1|localhost)(?::\d+)?", "<server>"),
    (r"\b(?:10|127|172|192)\.\d+\.\d+\.\d+\b", "<ip>"),
    (r"/tmp/(LIVE|MERGED)-\d+", r"/tmp/\1-<n>"),
    (r"\b[0-9a-f]{64}\b", "<id>"),
    (r"kube-api-access-\w{5}\b", "kube-api-access-<suffix>"),
    # A table without headers, whose last column is an age.
    (rf"(?m)^([^:\n]*[^:\s] {{2,}}){AGE}$", r"\1<age>"),
)
# What is compared of the sentences of a Status: its reason, and the path and problem of each cause.
PROBLEMS = "Invalid value|Required value|Unsupported value|Duplicate value|Not found|Forbidden|Too long|Too many"
REST = r"(?:.|\n(?!\* |[A-Z]\w+ |error: |\Z))*"
CAUSE = rf'(?m)^((?:The \S+ ".*?"|The request) is invalid: |\* )(\S+: (?:{PROBLEMS}))\b{REST}'
SENTENCES: Rules = (
    (CAUSE, r"\1\2"),
    (r"(?m)^(The request is invalid): (?!\S+: ).*", r"\1"),
    (r'(?m)^(Warning: (?:unknown|duplicate) field "[^"]*").*', r"\1"),
    (r"(?m)^(Error from server \(Forbidden\): .*? is forbidden: ).*", r"\1<message>"),
)
BAD_REQUEST = re.compile(r'(?m)^(Error from server(?: \(BadRequest\))?: (?:error when \w+ "[^"]*": )?)(.*)$')
FIELD = re.compile(r'(?:unknown|duplicate) field "[^"]*"')
MOVING = ("AGE", "Age", "LAST SEEN", "FIRST SEEN")
GAP = re.compile(r" {2,}")


def normal(text: str, case: Case, *, node: str = "") -> str:
    """Give the text without what differs from run to run; `node` is the name of the only node."""
    rules = ((rf"\b{re.escape(node)}\b", "<node>"), *RULES) if node else RULES
    text = _replaced(text, case.normalise)
    text = _replaced(_tables(text, rules), rules)
    if case.unordered:
        text = "".join(sorted(text.splitlines(keepends=True)))
    return text


def without_sentences(err: str) -> str:
    """Return what kubectl wrote to stderr without the sentences of the server: each server has its own."""
    err = BAD_REQUEST.sub(lambda line: f"{line[1]}<message> {', '.join(FIELD.findall(line[2]))}".rstrip(), err)
    return _replaced(err, SENTENCES)


def _replaced(text: str, rules: Rules) -> str:
    for pattern, word in rules:
        text = re.sub(pattern, word, text)
    return text


def _tables(text: str, rules: Rules) -> str:
    """Replace the ages in every table, and set its columns anew: they are as wide as the ages were."""
    done: list[str] = []
    table: list[str] = []
    for line in text.split("\n"):
        if table and line.strip():
            table.append(line)
            continue
        done += _set_anew(table, rules)
        table = [line] if _is_header(line) else []
        done += [] if table else [line]
    return "\n".join([*done, *_set_anew(table, rules)])


def _is_header(line: str) -> bool:
    words = GAP.split(line.strip())
    return len(words) > 1 and any(word in MOVING for word in words)


def _set_anew(table: Sequence[str], rules: Rules) -> Iterator[str]:
    if not table:
        return
    head = table[0]
    starts = [found.start() for found in re.finditer(r"(?:(?<=  )|^ *)\S", head)]
    starts[0] = 0
    names = [name.strip() for name in _cut(head, starts)]
    rows = [[_cell(*each, rules) for each in zip(names, _cut(line, starts), strict=True)] for line in table]
    widths = [max(len(row[i]) for row in rows) for i in range(len(names))]
    for row in rows:
        yield "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cut(line: str, starts: Sequence[int]) -> list[str]:
    ends = [*starts[1:], max(len(line), starts[-1])]
    return [line[start:end].rstrip() for start, end in zip(starts, ends, strict=True)]


def _cell(name: str, cell: str, rules: Rules) -> str:
    cell = _replaced(cell, rules)
    if name in MOVING:
        cell = re.sub(r" \(x\d+ over \S+\)", " (<often>)", cell)
        return re.sub(AGE, "<age>", cell)
    return re.sub(rf"\({AGE} ago\)", "(<age> ago)", cell)
