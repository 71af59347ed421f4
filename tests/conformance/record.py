"""Takes the answers anew from a real kubelet: `python -m tests.conformance.record [TOPIC…]`."""

import sys
from collections.abc import Sequence

from paceline.errors import HostError
from paceline.testing.real.cluster import real_node
from paceline.testing.real.kube import find_assets
from tests.conformance.answers import write
from tests.conformance.drive import run_cases
from tests.conformance.page import PAGE, page
from tests.conformance.table import all_cases

# More at once would make a slow machine miss the seconds of probes.
WIDTH = 16


def main(topics: Sequence[str]) -> None:
    """Record the cases of these topics, or of all."""
    wanted = [case for case in all_cases() if not topics or case.topic in topics]
    assets = find_assets()
    if assets is None:
        sys.exit("there is no kube-apiserver; type: make kube")
    try:
        with real_node(assets) as node:
            said = run_cases(node.kube.kubeconfig, wanted, width=WIDTH, expected=None)
    except HostError as problem:
        sys.exit(str(problem))
    for topic in sorted({case.topic for case in wanted}):
        path = write(topic, {case.name: said[case.name] for case in wanted if case.topic == topic})
        sys.stdout.write(f"{path}\n")
    PAGE.write_text(page())
    failed = [
        f"{case.topic}: {case.name}: {said[case.name]['failure']}" for case in wanted if "failure" in said[case.name]
    ]
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
