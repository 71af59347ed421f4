"""The pattern of a full git commit hash."""

import re

COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
