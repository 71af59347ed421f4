"""Compares the outcome of a simulated run that had crashes with the outcome of the same run without any.

In     the Life that was run, and two Outcomes of it.
Out    one line per difference that a crash does not excuse.
Never  runs anything.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from paceline.testing.sim.scenario import Life, Outcome

# A controller that is down for at most this long loses only the events it was about to record,
# this many per job and kill.
SHORT_SECONDS, IN_HAND = 1.0, 3


def differences(life: Life, expected: Outcome, seen: Outcome) -> Iterator[str]:
    """Say in which ways a life that was broken off ended otherwise than one that was not."""
    for key in sorted({*expected.objects, *seen.objects}):
        yield from _between(key, expected.objects.get(key), seen.objects.get(key))
    counts = (("executed", expected.executed, seen.executed), ("running", expected.running, seen.running))
    for kind, expected_counts, actual_counts in (*counts, ("file", expected.files, seen.files)):
        for name in sorted({*expected_counts, *actual_counts}):
            if expected_counts[name] != actual_counts[name]:
                yield f"{kind} {name}: {expected_counts[name]} times, now {actual_counts[name]}"
    for pod in sorted({*expected.ends, *seen.ends}):
        yield from _between(f"the end of {pod}", expected.ends.get(pod), seen.ends.get(pod))
    yield from _stories(life, expected, seen)


def _stories(life: Life, expected: Outcome, seen: Outcome) -> Iterator[str]:
    """A controller that dies between a write and its event omits the event; it never repeats or invents one."""
    for (about, reason, message), times in sorted(seen.events.items()):
        is_expected = expected.events.get((about, reason, message), reason in life.may_say)
        if _is_job(about) and times > is_expected:
            yield f"event {reason} of {about}, {message!r}: {int(is_expected)} times, now {times}"
    lost = Counter(story[0] for story, times in expected.events.items() if seen.events.get(story, 0) < times)
    for about, count in sorted(lost.items()):
        if _is_job(about) and count > _may_lose(seen):
            yield f"{count} events of {about} were never told"


def _is_job(about: str) -> bool:
    return about.partition(" ")[0].endswith("Job")


def _may_lose(seen: Outcome) -> int:
    """Say how many stories of one job may be lost: those that its controller had in hand."""
    if seen.plan.down_seconds > SHORT_SECONDS:
        return sys.maxsize  # What happens meanwhile is not seen happening.
    kills = sum(crash.component != "agent" or seen.plan.together for crash in seen.done)
    return kills * IN_HAND


def _between(path: str, expected: Any, actual: Any) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            yield from _between(f"{path}.{key}", expected.get(key), actual.get(key))
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (old, new) in enumerate(zip(expected, actual, strict=True)):
            yield from _between(f"{path}[{index}]", old, new)
    elif expected != actual:
        yield f"{path}: {expected!r}, now {actual!r}"
