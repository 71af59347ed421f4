"""Objects as YAML that people read: fields in their order, texts of several lines as blocks."""

from typing import Any

import yaml

from paceline.apimachinery.yaml_scalars import is_word
from paceline.cli.output.sanitize import ODD, escaped


class Dumper(yaml.CSafeDumper):
    """Writes without aliases: an object never refers to itself."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out."""
        return True


def _text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    # Between double quotes everything can be escaped, and elsewhere nothing.
    style = '"' if ODD.search(text) else "|" if "\n" in text else None if is_word(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text)


def dump(objects: Any) -> str:
    """Write an object."""
    text = str(yaml.dump(objects, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120))
    # YAML takes some characters for printable that turn the direction of what stands around them.
    return escaped(text)
