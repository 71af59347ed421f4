"""Probes without side effects: their settings, and the health that their results add up to."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

STARTUP, READINESS, LIVENESS = "startupProbe", "readinessProbe", "livenessProbe"
KINDS = (STARTUP, READINESS, LIVENESS)
NAMES = {STARTUP: "Startup", READINESS: "Readiness", LIVENESS: "Liveness"}
ACTIONS = ("exec", "httpGet", "tcpSocket", "grpc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One probe of a container, with Kubernetes' defaults filled in."""

    kind: str
    # One of ACTIONS, and the settings in its block.
    action: str
    settings: Mapping[str, Any]
    delay: timedelta = timedelta()
    period: timedelta = timedelta(seconds=10)
    timeout: timedelta = timedelta(seconds=1)
    successes: int = 1
    failures: int = 3
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often in a row a probe had the same result, and the verdict that its thresholds give."""

    verdict: bool
    is_good: bool = True
    times: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of a running container according to its probes."""

    started: bool = True
    ready: bool = True
    alive: bool = True
    # The probe because of which the container must stop, and its grace period.
    failed: str = ""
    grace_seconds: int | None = None


def probe_of(container: Mapping[str, Any], kind: str) -> Probe | None:
    """Return one probe of a container; None when it has none of this kind."""
    spec = container.get(kind)
    if not spec:
        return None
    action = next((name for name in ACTIONS if spec.get(name) is not None), "")
    return Probe(
        kind=kind,
        action=action,
        settings=spec.get(action) or {},
        delay=timedelta(seconds=spec.get("initialDelaySeconds") or 0),
        period=timedelta(seconds=spec.get("periodSeconds") or 10),
        timeout=timedelta(seconds=spec.get("timeoutSeconds") or 1),
        successes=spec.get("successThreshold") or 1,
        failures=spec.get("failureThreshold") or 3,
        grace_seconds=spec.get("terminationGracePeriodSeconds"),
    )


def probes_of(container: Mapping[str, Any]) -> tuple[Probe, ...]:
    """Return all probes of a container."""
    return tuple(probe for kind in KINDS if (probe := probe_of(container, kind)) is not None)


def first_tally(probe: Probe) -> Tally:
    """Return the tally before the first result: alive until a probe fails, not ready until one succeeds."""
    return Tally(verdict=probe.kind == LIVENESS)


def count(tally: Tally, probe: Probe, *, is_good: bool) -> Tally:
    """Add one result."""
    times = tally.times + 1 if tally.is_good is is_good and tally.times else 1
    threshold = probe.successes if is_good else probe.failures
    counted = replace(tally, is_good=is_good, times=times)
    return replace(counted, verdict=is_good) if times >= threshold else counted


def is_fatal(tally: Tally, probe: Probe) -> bool:
    """Return whether a container must stop because of this probe."""
    return probe.kind != READINESS and not tally.is_good and tally.times >= probe.failures


def health_of(container: Mapping[str, Any], tallies: Mapping[str, Tally]) -> Health:
    """Combine the tallies of all probes of a container."""
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
