"""Bugs to plant: each is one change somebody could make by mistake, by name. The simulation must find every one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from paceline.apimachinery.meta import Object
from paceline.apiserver.handlers import create_update as write_verbs
from paceline.client import workqueue
from paceline.controllers.gc import garbage_collector
from paceline.controllers.gc.garbage_collector import ObjectRef
from paceline.controllers.job import reconciler as control_jobs
from paceline.errors import NotFound
from paceline.host.cluster_clock import ClusterClock
from paceline.model.job_status import JobStatus, Phase
from paceline.node import agent
from paceline.node.lifecycle import decide as node_decide
from paceline.plan.garbage_collection import Standing, standing_of
from paceline.plan.job import cleanup, completion, reconcile, restart
from paceline.plan.job import decide as plan_decide
from paceline.store import group_commit
from paceline.testing.sim.backend import SimLog

Plant = Callable[[pytest.MonkeyPatch], None]


def replace_rule(patch: pytest.MonkeyPatch, name: str, rule: Callable[..., Any]) -> None:
    """Put another function in the place of a rule or an amendment of the same name."""
    for table in ("RULES", "AMENDMENTS"):
        changed = tuple(rule if each.__name__ == name else each for each in getattr(plan_decide, table))
        patch.setattr(plan_decide, table, changed)
    assert rule in (*plan_decide.RULES, *plan_decide.AMENDMENTS)


def without_restarts(status: JobStatus) -> JobStatus:
    """A status that has forgotten every restart."""
    return replace(status, replicas=tuple(replace(record, restarts=0) for record in status.replicas))


def the_disk_answers_before_it_has_synced(patch: pytest.MonkeyPatch) -> None:
    made = SimLog.__init__

    def lazy(self: SimLog, **options: Any) -> None:
        made(self, **options)
        self.lazy = True

    patch.setattr(SimLog, "__init__", lazy)


def nobody_checks_the_revision(patch: pytest.MonkeyPatch) -> None:
    write = group_commit.Writer.write

    async def unguarded(self: Any, op: Any, key: str, **more: Any) -> Any:
        return await write(self, op, key, **{**more, "expected": None})

    patch.setattr(group_commit.Writer, "write", unguarded)
    patch.setattr(write_verbs.WriteHandler, "_check_preconditions", lambda *_: None)


def restarts_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    restarted = restart.restarted

    def uncounted(status: Any, *rest: Any) -> Any:
        return without_restarts(restarted(status, *rest))

    patch.setattr(restart, "restarted", uncounted)


def ports_are_chosen_without_looking_at_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(control_jobs.Jobs, "_taken", lambda _self: frozenset())


def owners_are_told_apart_by_name(patch: pytest.MonkeyPatch) -> None:
    async def standing(self: garbage_collector.GarbageCollector, item: ObjectRef, owner: Object) -> Standing:
        where = self.following.served.by_kind[str(owner["apiVersion"]), str(owner["kind"])]
        try:
            return standing_of(await self.cluster.get(where, item.namespace, str(owner["name"])))
        except NotFound:
            return Standing.GONE

    patch.setattr(garbage_collector.GarbageCollector, "_standing", standing)


def a_failed_job_is_taken_up_again(patch: pytest.MonkeyPatch) -> None:
    def again(seen: Any, now: Any) -> Any:
        status = seen.status
        if status.phase is Phase.FAILED:
            seen = replace(seen, status=replace(status, phase=Phase.RUNNING))
        return plan_decide.decide(seen, now)

    patch.setattr(control_jobs, "decide", again)


def new_tries_do_not_wait_for_old_ones(patch: pytest.MonkeyPatch) -> None:
    missing = reconcile._missing
    patch.setattr(reconcile, "_missing", lambda view, _old: missing(view, ()))


def a_job_is_announced_again_and_again(patch: pytest.MonkeyPatch) -> None:
    report_created = plan_decide.report_created

    def twice(view: Any, plan: Any, now: Any) -> Any:
        return report_created(replace(view, stored=replace(view.stored, conditions=())), plan, now)

    replace_rule(patch, "report_created", twice)


def a_lost_container_is_never_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_decide, "_lost", lambda _seen, _now: ())


def the_agent_does_not_look_for_what_it_left_behind(patch: pytest.MonkeyPatch) -> None:
    async def clear(_self: Any, _uid: str) -> None:
        return

    patch.setattr(agent.Agent, "_clear", clear)
    patch.setattr(agent.Agent, "_follow", lambda _self, _uid, _tries: None)


def a_commit_that_failed_is_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    async def doubtless(self: Any, batch: Any, error: Any) -> None:
        self._unsure = False
        batch.fail(error)

    patch.setattr(group_commit.Writer, "_resolve_ambiguous", doubtless)


def work_that_failed_is_not_tried_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(workqueue.WorkQueue, "failed", lambda self, key, _error: self.succeeded(key))


def a_pause_forgets_how_often_a_job_was_tried(patch: pytest.MonkeyPatch) -> None:
    pause = plan_decide.pause

    def forgetful(view: Any, now: Any) -> Any:
        plan = pause(view, now)
        return plan and replace(plan, status=without_restarts(replace(plan.status, attempt=0)))

    replace_rule(patch, "pause", forgetful)


def nobody_clears_away_what_owners_leave(patch: pytest.MonkeyPatch) -> None:
    async def kept(_self: Any, _item: Any) -> None:
        return

    patch.setattr(garbage_collector.GarbageCollector, "reconcile", kept)


def an_ended_job_keeps_its_pods(patch: pytest.MonkeyPatch) -> None:
    clean_up = cleanup.clean_up
    for module in (cleanup, completion):
        patch.setattr(module, "clean_up", lambda *seen: replace(clean_up(*seen), delete=(), wake_at=None))


def an_ended_job_stays_beyond_its_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cleanup, "_expiry", lambda _view: None)


def the_cluster_goes_by_the_machines_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterClock, "now", lambda self: self.machine.now())


# Each with the seed and the number of events that found it fast when it was last looked for: tried first, they save
# minutes. What shows only when all has come to rest shows after a short run as well as after a long one.
_FOUND_BY: dict[Plant, tuple[int, int]] = {
    the_disk_answers_before_it_has_synced: (6, 2_000),
    nobody_checks_the_revision: (10, 2_000),
    restarts_are_not_counted: (8, 300),
    ports_are_chosen_without_looking_at_others: (0, 2_000),
    owners_are_told_apart_by_name: (3, 300),
    a_failed_job_is_taken_up_again: (1, 2_000),
    new_tries_do_not_wait_for_old_ones: (0, 300),
    a_job_is_announced_again_and_again: (0, 2_000),
    a_lost_container_is_never_noticed: (0, 600),
    the_agent_does_not_look_for_what_it_left_behind: (1, 300),
    a_commit_that_failed_is_not_looked_for: (0, 300),
    work_that_failed_is_not_tried_again: (3, 300),
    a_pause_forgets_how_often_a_job_was_tried: (4, 300),
    nobody_clears_away_what_owners_leave: (1, 300),
    an_ended_job_keeps_its_pods: (0, 300),
    an_ended_job_stays_beyond_its_time: (1, 300),
    the_cluster_goes_by_the_machines_clock: (6, 2_000),
}
PLANTS: dict[str, tuple[Plant, tuple[int, int]]] = {
    plant.__name__.replace("_", " "): (plant, found) for plant, found in _FOUND_BY.items()
}
