"""What belongs to an application, and what of it cannot change."""

import pytest

from paceline.plan.app.manifests import claim_change


def wish(storage="5Gi", **more):
    return {"resources": {"requests": {"storage": storage}}, **more}


LABELLED = {"storageClassName": "", "selector": {"matchLabels": {"train": "mnist"}}}
CASES = {
    "the same": (wish(), wish(), ""),
    "the same, as the cluster completes it": (wish(storageClassName="standard", volumeName="v"), wish(), ""),
    "the same size in other words": (wish("5Gi"), wish("5120Mi"), ""),
    "another size": (wish("5Gi"), wish("6Gi"), "its size"),
    "other labels": (wish(**LABELLED), wish(), "the labels of its volume"),
    "labels where none were": (wish(storageClassName="standard"), wish(**LABELLED), "the labels of its volume"),
    "another class": (wish(storageClassName="a"), wish(storageClassName="b"), "its storage class"),
}


@pytest.mark.parametrize(("there", "wanted", "said"), CASES.values(), ids=CASES)
def test_what_of_a_claim_would_have_to_change_is_said(there, wanted, said):
    assert claim_change({"spec": there}, wanted) == said
