"""The quick way to the embedded cluster: its kubeconfig is JSON, so no YAML reader is loaded."""

import os
from collections.abc import Callable
from pathlib import Path

from paceline.client.access import from_json
from paceline.client.direct import DirectCluster, ignore_warning
from paceline.client.transport import Unreached
from paceline.errors import Malformed, Unavailable
from paceline.sdk.document import Document
from paceline.sdk.home import home_from
from paceline.sdk.session import Session

__all__ = ["Unreached", "connect_embedded", "kubeconfig_in"]


def connect_embedded(
    home: str | Path | None = None,
    *,
    namespace: str = "",
    on_warning: Callable[[str], None] = ignore_warning,
) -> Session:
    """Connect to the embedded cluster under `home`; this session takes dicts, not files."""
    path = kubeconfig_in(home)
    found = from_json(path, Path.read_bytes)
    if found is None:
        raise Unavailable(f"{path} is not JSON any more; `paceline up` writes it anew")
    return Session(
        lambda: DirectCluster(found, on_warning=on_warning),
        namespace or found.namespace,
        read=_no_files,
    )


def kubeconfig_in(home: str | Path | None) -> Path:
    """Find the kubeconfig of the embedded cluster; Unreached when it was never started."""
    folder = Path(home).expanduser() if home else home_from(os.environ)
    path = folder / "kubeconfig"
    if not path.exists():
        raise Unreached(f"no cluster was ever started in {folder}; `paceline up -d` starts one")
    return path


def _no_files(path: str) -> tuple[Document, ...]:
    raise Malformed(f"{path}: this session reads no files; use paceline.connect")
