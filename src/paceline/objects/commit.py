"""The name of a commit of git, written out."""

import re

COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
