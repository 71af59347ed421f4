"""Probes, the pure part: what is asked of a container how often, and what the answers add up to."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

STARTUP, READINESS, LIVENESS = "startupProbe", "readinessProbe", "livenessProbe"
KINDS = (STARTUP, READINESS, LIVENESS)
NAMES = {STARTUP: "Startup", READINESS: "Readiness", LIVENESS: "Liveness"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One probe of a container, with Kubernetes' defaults filled in."""

    kind: str
    # `exec`, `httpGet`, `tcpSocket` or `grpc`, and what that block says.
    action: str
    what: Mapping[str, Any]
    delay: timedelta = timedelta()
    period: timedelta = timedelta(seconds=10)
    timeout: timedelta = timedelta(seconds=1)
    successes: int = 1
    failures: int = 3
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often in a row a probe gave the same answer, and what it has come to stand for."""

    verdict: bool
    is_good: bool = True
    times: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What probes say of a running container."""

    started: bool = True
    ready: bool = True
    alive: bool = True
    # Which probe said that it must go, and how long it may take to.
    failed: str = ""
    grace_seconds: int | None = None


def probe_of(container: Mapping[str, Any], kind: str) -> Probe | None:
    """Read one probe of a container; None when it has none of this kind."""
    said = container.get(kind)
    if not said:
        return None
    action = next((name for name in ("exec", "httpGet", "tcpSocket", "grpc") if said.get(name) is not None), "")
    return Probe(
        kind=kind,
        action=action,
        what=said.get(action) or {},
        delay=timedelta(seconds=said.get("initialDelaySeconds") or 0),
        period=timedelta(seconds=said.get("periodSeconds") or 10),
        timeout=timedelta(seconds=said.get("timeoutSeconds") or 1),
        successes=said.get("successThreshold") or 1,
        failures=said.get("failureThreshold") or 3,
        grace_seconds=said.get("terminationGracePeriodSeconds"),
    )


def probes_of(container: Mapping[str, Any]) -> tuple[Probe, ...]:
    """Read all probes of a container."""
    found = (probe_of(container, kind) for kind in KINDS)
    return tuple(probe for probe in found if probe is not None)


def first_tally(probe: Probe) -> Tally:
    """Begin to count: nobody is ready before he said so, and everybody lives until he is found dead."""
    return Tally(verdict=probe.kind == LIVENESS)


def count(tally: Tally, probe: Probe, *, is_good: bool) -> Tally:
    """Add one answer."""
    times = tally.times + 1 if tally.is_good is is_good and tally.times else 1
    wanted = probe.successes if is_good else probe.failures
    counted = replace(tally, is_good=is_good, times=times)
    return replace(counted, verdict=is_good) if times >= wanted else counted


def is_fatal(tally: Tally, probe: Probe) -> bool:
    """Tell whether a container has to go because of this probe."""
    return probe.kind != READINESS and not tally.is_good and tally.times >= probe.failures


def health_of(container: Mapping[str, Any], tallies: Mapping[str, Tally]) -> Health:
    """Add up what all probes of a container have come to."""
    health = Health()
    for probe in probes_of(container):
        tally = tallies.get(probe.kind) or first_tally(probe)
        if is_fatal(tally, probe):
            health = replace(health, alive=False, failed=probe.kind, grace_seconds=probe.grace_seconds)
        if probe.kind == STARTUP and not tally.verdict:
            health = replace(health, started=False, ready=False)
        if probe.kind == READINESS and not tally.verdict:
            health = replace(health, ready=False)
    return health
