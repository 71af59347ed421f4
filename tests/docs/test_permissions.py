"""The page on Kubernetes lists the permissions of the controllers: these, and no others."""

import re

from tests.docs.blocks import ROOT

from paceline.cluster.rbac import cluster_rights, lease_rights, rights
from paceline.kinds.kind_types import GROUP

PAGE = ROOT / "docs" / "guides" / "kubernetes.md"


def label(right):
    """How the page names the resources of a permission."""
    subresource = right.resources[0].partition("/")[2]
    if right.group == GROUP:
        return f"{subresource} of these jobs" if subresource else f"jobs of `{GROUP}`"
    if right.resources == ("leases",):
        return f"the lease `{right.name}`" if right.name else "`leases` in Paceline's namespace"
    names = ", ".join(f"`{resource}`" for resource in right.resources)
    return f"{names} of `{right.group}`" if right.resources == ("podgroups",) else names


def test_the_page_lists_every_permission_and_no_other():
    section = PAGE.read_text().partition("## Permissions\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", section, re.MULTILINE)[1:]
    listed = {resources: verbs for resources, verbs in rows if not resources.startswith("---")}
    every = (*rights(), *cluster_rights(), *lease_rights("paceline-controller"))
    granted = {label(right): ", ".join(right.verbs) for right in every}

    assert listed == granted
