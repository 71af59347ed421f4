"""The registry of templates."""

from paceline.apimachinery.field_errors import FieldFault, Problem, did_you_mean
from paceline.errors import Invalid
from paceline.kinds.apps.templates import model_training, tensorflow_training
from paceline.kinds.apps.templates.types import Template

TEMPLATES: tuple[Template, ...] = (tensorflow_training.TEMPLATE, model_training.TEMPLATE)


def find(name: str, path: str = "template") -> Template:
    """Return a template by name, with or without a repository prefix; raise Invalid with a suggestion."""
    bare = name.rpartition("/")[2]
    for template in TEMPLATES:
        if bare in (template.name, *template.also):
            return template
    names = [alias for template in TEMPLATES for alias in (template.name, *template.also)]
    listed = ", ".join(template.name for template in TEMPLATES)
    hint = f"unknown template{did_you_mean(bare, names) or f'; the templates are: {listed}'}"
    raise Invalid((FieldFault(path, name, hint, Problem.NOT_FOUND),))
