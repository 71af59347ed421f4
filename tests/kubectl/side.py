"""One side of the comparison: a cluster, and how a case is run on it."""

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from paceline.apimachinery.builtin.registry import builtin_components
from paceline.kinds import registry
from paceline.testing.embedded import wait_until
from tests.kubectl.normal import normal
from tests.kubectl.recordings import Said
from tests.kubectl.table import MANIFESTS, Case

COMMAND_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A cluster under the same conditions as the other one."""

    kubectl: Path
    # The administrator's access, as the cluster wrote it.
    kubeconfig: Path
    # An empty folder for this side's own files.
    home: Path
    # The original: nothing of ours controls jobs there.
    is_real: bool = False

    def prepare(self, cases: Sequence[Case]) -> None:
        """Make a namespace for every case, and the kind that a user has defined."""
        names = [case.namespace for case in cases]
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
        self.must("kubectl create -f -", stdin=yaml.safe_dump_all(spaces))
        self.must("kubectl apply -f widgets.yaml")
        if self.is_real:
            ours = registry.crds(builtin_components())
            self.must("kubectl create -f -", stdin="".join(f"---\n{json.dumps(each)}\n" for each in ours))
        kinds = ",".join(("widgets", *(kind.plural for kind in registry.KINDS)))
        wait_until("all kinds are served", partial(self._works, f"kubectl get {kinds}", "default"))
        if any(case.needs == "node" for case in cases):
            # Pods are refused before their namespace has its service account.
            wait_until("every namespace has its service account", lambda: self._accounts() >= set(names))

    def make_accounts(self, cases: Sequence[Case]) -> None:
        """Do what no controller does beside a lone server: without its service account a namespace takes no pods."""
        named = ({"name": "default", "namespace": case.namespace} for case in cases)
        accounts = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": each} for each in named]
        self.must("kubectl create -f -", stdin=yaml.safe_dump_all(accounts))

    def _accounts(self) -> set[str]:
        named = "--field-selector metadata.name=default -o jsonpath={.items[*].metadata.namespace}"
        return set(self._run(f"kubectl get serviceaccounts -A {named}", "default").stdout.split())

    def say(self, case: Case) -> Said:
        """Run a case in its own namespace, and tell how it went."""
        for command in (*case.setup, *(case.stand_in if self.is_real else ())):
            self.must(command, case.namespace)
        for command in case.until:
            wait_until(command, partial(self._works, command, case.namespace), COMMAND_SECONDS)
        if case.meanwhile or case.lines:
            return self._watched(case)
        done = self._run(case.run, case.namespace, stdin=case.stdin)
        return self._said(case, f"exit {done.returncode}", done.stdout, done.stderr)

    def must(self, command: str, namespace: str = "default", *, stdin: str = "") -> None:
        """Run a command that has to work."""
        done = self._run(command, namespace, stdin=stdin)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"

    def _works(self, command: str, namespace: str) -> bool:
        return self._run(command, namespace).returncode == 0

    def _run(self, command: str, namespace: str, *, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command, _, file = command.partition(" < ")
        if file:
            # A manifest that has to know its namespace.
            stdin = (MANIFESTS / file).read_text().replace("$NS", namespace)
        return subprocess.run(
            self._words(command, namespace),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
            **self._surroundings(namespace),
        )

    def _watched(self, case: Case) -> Said:
        """Run a command that goes on while others run, and stop it once it has said enough."""
        with subprocess.Popen(
            self._words(case.run, case.namespace),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **self._surroundings(case.namespace),
        ) as process:
            out, err = Lines(process.stdout), Lines(process.stderr)
            try:
                if case.lines:
                    wait_until(f"{case.run} says something", lambda: out.seen or process.poll() is not None)
                for command in case.meanwhile:
                    self.must(command, case.namespace)
                if case.lines:
                    wait_until(f"{case.run} says enough", lambda: len(out.seen) >= case.lines, COMMAND_SECONDS)
                    end = "stopped"
                else:
                    end = f"exit {process.wait(COMMAND_SECONDS)}"
            finally:
                process.send_signal(signal.SIGKILL)
                # To its end: leaving this block closes the streams, also under a thread that still reads.
                seen = out.text(case.lines or None), err.text()
        return self._said(case, end, *seen)

    def _said(self, case: Case, end: str, out: str, err: str) -> Said:
        node = self._node() if case.needs == "node" else ""
        return Said(end=end, out=normal(out, case, node=node), err=normal(err, case, node=node))

    def _node(self) -> str:
        """The name of the only node, which is another one on each side."""
        return self._run("kubectl get nodes -o jsonpath={.items[0].metadata.name}", "default").stdout

    def _words(self, command: str, namespace: str) -> list[str]:
        program, *rest = shlex.split(command.replace("$NS", namespace))
        assert program == "kubectl", command
        return [str(self.kubectl), *rest]

    def _surroundings(self, namespace: str) -> dict[str, Any]:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KUBECONFIG": str(self._kubeconfig(namespace)),
            "KUBECACHEDIR": str(self.home / "cache"),
            "KUBERC": "off",
            "TZ": "UTC",
        }
        return {"env": env, "cwd": MANIFESTS}

    def _kubeconfig(self, namespace: str) -> Path:
        """The same access with another namespace, as people have it."""
        path = self.home / f"kubeconfig-{namespace}"
        if not path.exists():
            config = yaml.safe_load(self.kubeconfig.read_text())
            for each in config["contexts"]:
                each["context"]["namespace"] = namespace
            path.write_text(json.dumps(config))
        return path


class Lines:
    """What a stream has said so far."""

    def __init__(self, stream: Any) -> None:
        """Start to read."""
        self.seen: list[str] = []
        self._stream = stream
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._stream:
            self.seen.append(line)

    def text(self, first: int | None = None) -> str:
        """All of it, or the first lines; the process has ended."""
        self._reader.join(COMMAND_SECONDS)
        return "".join(self.seen[:first])
