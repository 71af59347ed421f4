"""What T9k's pages and files let one assert of a job is a test each, named by its number.

1 the tutorial's TensorFlow job; 2 TF_CONFIG; 3 ranks over types; 4 torchrun and `command`; 5 exit codes; 6 the shared
limit; 7 success and failure rules; 8 a TF_CONFIG by variables; 9 ranks in quotes; 10 pause and resume; 11 debug mode;
12 the deadline; 13 elastic bounds; 14 misspelt fields; 15 older generations; 17 file sets; 18 devices in limits and
requests; 19 what a deleted job leaves; 20 conditions of a failed job. Number 16 is about files that are not ours.
"""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
NUMBERS = frozenset(range(1, 21)) - {16}


def docstrings(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            yield ast.get_docstring(node) or ""


def test_every_vector_is_a_test():
    said = [text for path in TESTS.rglob("test_*.py") for text in docstrings(path)]
    named = {int(number) for text in said if re.match(r"Vectors? \d", text) for number in re.findall(r"\d+", text[:14])}

    assert named >= NUMBERS
