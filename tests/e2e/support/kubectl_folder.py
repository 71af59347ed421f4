"""kubectl in a folder that pods may mount: the cache it comes from is closed to them."""

import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def kubectl_folder() -> Path:
    """Return a folder with nothing but kubectl in it; one per process."""
    folder = Path(tempfile.mkdtemp(prefix="kubectl-"))
    folder.chmod(0o755)
    shutil.copy2(shutil.which("kubectl") or "", folder / "kubectl")
    return folder
