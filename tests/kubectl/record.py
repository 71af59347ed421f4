"""Takes the recordings anew from a real Kubernetes: `python -m tests.kubectl.record [FILE…]`."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from paceline.errors import HostError
from paceline.testing.real.cluster import real_node
from paceline.testing.real.kube import RealKube, find_assets, real_kube
from tests.kubectl.recordings import Said, write
from tests.kubectl.side import Side
from tests.kubectl.table import Case, all_cases


def main(files: Sequence[str]) -> None:
    """Record the cases of these files, or of all."""
    wanted = [case for case in all_cases() if not files or case.file in files]
    assets = find_assets()
    if assets is None:
        sys.exit("there is no kube-apiserver; type: make kube")
    said: dict[str, Said] = {}
    for needs in ("", "node"):
        said |= _recorded(assets, [case for case in wanted if case.needs == needs], needs)
    for file in sorted({case.file for case in wanted}):
        path = write(file, [(case, said[case.name]) for case in wanted if case.file == file])
        sys.stdout.write(f"{path}\n")


def _recorded(assets: Path, cases: Sequence[Case], needs: str) -> dict[str, Said]:
    """Run the cases on a fresh cluster of the sort they need."""
    if not cases:
        return {}
    said: dict[str, Said] = {}
    with _cluster(assets, needs) as kube, TemporaryDirectory() as home:
        side = Side(kubectl=assets / "kubectl", kubeconfig=kube.kubeconfig, home=Path(home), is_real=True)
        side.prepare(cases)
        if needs != "node":
            side.make_accounts(cases)
        for case in cases:
            try:
                said[case.name] = side.say(case)
            except (AssertionError, subprocess.TimeoutExpired) as problem:
                sys.exit(f"{case.file}: {case.name}: {problem}")
            sys.stdout.write(f"{case.file}: {case.name}: {said[case.name].end}\n")
    return said


@contextmanager
def _cluster(assets: Path, needs: str) -> Iterator[RealKube]:
    if needs != "node":
        with real_kube(assets, flags=()) as kube:
            yield kube
        return
    try:
        with real_node(assets) as node:
            yield node.kube
    except HostError as problem:
        sys.exit(f"{problem}\n(without a node, name the files to record: create apply get …)")


if __name__ == "__main__":
    main(sys.argv[1:])
