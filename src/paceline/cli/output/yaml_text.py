"""Readable YAML: fields in order, multi-line texts as blocks."""

from typing import Any

import yaml

from paceline.apimachinery.yaml_reader import is_word
from paceline.cli.output.console import ODD, escaped


class Dumper(yaml.CSafeDumper):
    """A dumper without aliases, because objects contain no references."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: never write aliases."""
        return True


def _text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    # Only double-quoted strings can contain escapes.
    style = '"' if ODD.search(text) else "|" if "\n" in text else None if is_word(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text)


def dump(objects: Any) -> str:
    """Format an object as YAML."""
    text = str(yaml.dump(objects, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120))
    # PyYAML treats some bidirectional control characters as printable.
    return escaped(text)
