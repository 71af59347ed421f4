"""The processes of a cluster start without what many clusters never use: a restart waits for every import."""

import json
import subprocess
import sys

import pytest

UNUSED = {"yaml", "websockets.client", "websockets.server", "jsonschema_rs"}


@pytest.mark.parametrize("process", ["control_plane_main", "node_agent"])
def test_a_process_starts_without_the_parsers_that_its_first_requests_do_not_need(process):
    script = f"import json, sys, paceline.cluster.{process}; print(json.dumps(sorted(sys.modules)))"
    listed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert UNUSED.isdisjoint(json.loads(listed))
