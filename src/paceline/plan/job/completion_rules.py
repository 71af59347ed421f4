"""When a job is over: rules that name places, and hold when all of them ended one way."""

from paceline.model.gang import ReplicaId, Rule


def holding(rules: tuple[Rule, ...], places: frozenset[ReplicaId]) -> Rule | None:
    """Find the first rule all of whose places are among `places`."""
    return next((rule for rule in rules if places.issuperset(rule)), None)


def is_hopeless(rules: tuple[Rule, ...], lost: frozenset[ReplicaId]) -> bool:
    """Return whether every rule needs a place that is lost, so that none can hold any more."""
    return all(not lost.isdisjoint(rule) for rule in rules)


def say(rule: Rule) -> str:
    """Write a rule the way its author did: `{worker: [0, 1]}`."""
    roles = dict.fromkeys(place.role for place in rule)
    ranks = {role: [place.index for place in rule if place.role == role] for role in roles}
    return "{" + ", ".join(f"{role}: {indices}" for role, indices in ranks.items()) + "}"


def say_success(rule: Rule) -> str:
    """Describe why the job succeeded. A one-replica rule is the kind's default, so name the replica."""
    if len(rule) == 1:
        return f"{rule[0]} has succeeded, which decides over the job"
    return f"success rule {say(rule)} holds"
