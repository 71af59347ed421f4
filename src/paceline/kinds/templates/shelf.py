"""The one list of templates."""

from paceline.errors import Invalid
from paceline.kinds.templates import model_training, tensorflow_training
from paceline.kinds.templates.mould import Template
from paceline.objects.faults import FieldFault, Problem, did_you_mean

TEMPLATES: tuple[Template, ...] = (tensorflow_training.TEMPLATE, model_training.TEMPLATE)


def find(name: str, path: str = "template") -> Template:
    """Find a template by name, with or without the repository that others keep it in; Invalid suggests a close one."""
    bare = name.rpartition("/")[2]
    for template in TEMPLATES:
        if bare in (template.name, *template.also):
            return template
    known = [word for each in TEMPLATES for word in (each.name, *each.also)]
    there = ", ".join(each.name for each in TEMPLATES)
    hint = f"there is no such template{did_you_mean(bare, known) or f'; there are: {there}'}"
    raise Invalid((FieldFault(path, name, hint, Problem.NOT_FOUND),))
