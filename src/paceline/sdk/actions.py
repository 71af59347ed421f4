"""Carries out the plan of an action, with the name of the person who asked for it."""

from paceline.apimachinery.meta import Key, Object
from paceline.client.interface import Collection
from paceline.client.sync import DirectCluster
from paceline.errors import PacelineError
from paceline.presentation.actions import ActionPlan, asked_by

REVIEWS = Collection(group="authentication.k8s.io", version="v1", plural="selfsubjectreviews", namespaced=False)
REVIEW: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def patch(cluster: DirectCluster, where: Collection, key: Key, plan: ActionPlan, *, subject: str) -> Object:
    """Patch an object as planned; raise MethodNotAllowed if that is not possible now."""
    plan.require(subject)
    return cluster.patch(where, key, asked_by(plan, caller_name(cluster)).body)


def delete(cluster: DirectCluster, where: Collection, key: Key, plan: ActionPlan) -> None:
    """Delete an object as planned."""
    cluster.delete(where, key, plan.body)


def caller_name(cluster: DirectCluster) -> str:
    """Return the name by which the cluster knows us; empty if it does not tell (before Kubernetes 1.28)."""
    try:
        review = cluster.create(REVIEWS, REVIEW)
    except PacelineError:
        return ""
    return str(((review.get("status") or {}).get("userInfo") or {}).get("username") or "")
