"""Training curves are read from the lines that trainings print."""

import pytest

from paceline.model.log_metrics import series_in
from paceline.presentation.curves import log_runs
from paceline.presentation.metric_names import less_is_better

LOGS = {
    "pairs": (["step 1 loss=0.5", "step 2 loss=0.25"], {"loss": ([1, 2], [0.5, 0.25])}),
    "usual names without a sign": (
        ["epoch 1/2  loss 0.5  acc 0.1", "epoch 2/2  loss 0.25  acc 0.9"],
        {"loss": ([1, 2], [0.5, 0.25]), "acc": ([1, 2], [0.1, 0.9])},
    ),
    "the tutorial's own lines": (
        [
            "Step: 101,  Epoch:  1,  Batch: 100 of 550,  Cost: 8.5153,  AvgTime: 3.05ms",
            "Step: 201,  Epoch:  1,  Batch: 200 of 550,  Cost: 6.1,  AvgTime: 2.9ms",
        ],
        {"Cost": ([101, 201], [8.5153, 6.1]), "AvgTime": ([101, 201], [3.05, 2.9])},
    ),
    "steps that begin again are counted": (
        ["epoch 1 loss=3", "epoch 1 loss=2", "epoch 2 loss=1"],
        {"loss": ([1, 2, 3], [3, 2, 1])},
    ),
    "final results alone": (
        ["Test-Accuracy: 0.89", "Total Time: 12.5s"],
        {"Test-Accuracy": ([1], [0.89]), "Total Time": ([1], [12.5])},
    ),
    "nothing": (["hello", "rank: 3", "listening on port: 8080"], {}),
}


@pytest.mark.parametrize(("lines", "curves"), LOGS.values(), ids=LOGS)
def test_h66_h70_a_log_has_the_curves_of(lines, curves):
    series = series_in((float(number), line) for number, line in enumerate(lines))
    assert {name: (points.steps, points.values) for name, points in series.items()} == curves


def test_hostile_lines_cost_nothing():
    series = series_in((0.0, line) for line in ("a" * 1_000_000, "=" * 1_000_000, *(f"m{i}=1" for i in range(1000))))
    assert len(series) <= 32


def test_a_long_log_is_thinned_and_keeps_its_extremes():
    series = series_in((float(step), f"step {step} loss={9 if step == 500 else 1}") for step in range(1, 2001))
    (run,) = log_runs(series, 100)
    (loss,) = run["scalars"]
    assert (len(loss["steps"]), loss["count"], loss["steps"][-1]) == (100, 2000, 2000)
    assert max(loss["high"]) == loss["max"]["value"] == 9
    assert loss["max"]["step"] == 500
    assert log_runs({}, 100) == []


@pytest.mark.parametrize(
    ("name", "is_less"),
    [
        ("val_loss", True),
        ("train/Loss", True),
        ("testAccuracy", False),
        ("F1", False),
        ("lr", None),
        ("top1_acc", False),
    ],
)
def test_a_name_says_whether_less_is_better(name, is_less):
    assert less_is_better(name) is is_less
