"""How far a training is, from what it prints."""

import pytest

from paceline.cli.output.follow import fine_bar, is_worth_a_line, plain_bar
from paceline.presentation.progress import TrainingProgress, latest


def epoch(done, total=12):
    return TrainingProgress(unit="epoch", done=done, total=total)


LINES = {
    "our own example": ("epoch 3/12  loss 0.1", "epoch 3/12"),
    "Keras": ("Epoch 3/12", "epoch 3/12"),
    "brackets": ("Epoch [3/12], Step [40/100]", "epoch 3/12"),
    "a colon": ("epoch: 3 / 12", "epoch 3/12"),
    "of": ("Epoch 3 of 12", "epoch 3/12"),
    "an equals sign": ("epoch=3/12", "epoch 3/12"),
    "steps alone": ("step 40/100", "step 40/100"),
    "iterations": ("Iteration 5/9", "iteration 5/9"),
    "the last one counts": ("epoch 1/12\nepoch 2/12\n", "epoch 2/12"),
    "a date is none": ("2030/01/02 03:04", None),
    "a fraction is none": ("accuracy 3/12", None),
    "part of a word is none": ("timestep_epoch3/12", None),
    "more than all is none": ("epoch 13/12", None),
    "of nothing is none": ("epoch 0/0", None),
    "a flood is read at its end": ("x" * 10_000 + " epoch 4/12", "epoch 4/12"),
}


@pytest.mark.parametrize(("text", "found"), LINES.values(), ids=LINES)
def test_progress_in_a_log(text, found):
    progress = latest(text)

    assert (str(progress) if progress else None) == found


def test_epochs_are_not_pushed_aside_by_steps():
    assert latest("step 5/10", epoch(3)) == epoch(3)
    assert latest("epoch 1/3", TrainingProgress(unit="step", done=5, total=10)) == epoch(1, 3)


def test_what_is_known_stays_when_nothing_new_is_said():
    assert latest("loss 0.2", epoch(3)) == epoch(3)


BARS = {
    "[                    ] epoch 0/12": epoch(0),
    "[====>               ] epoch 3/12": epoch(3),
    "[=================>  ] epoch 11/12": epoch(11),
    "[====================] epoch 12/12": epoch(12),
}


@pytest.mark.parametrize(("shown", "progress"), BARS.items())
def test_a_plain_bar(shown, progress):
    assert plain_bar(progress) == shown


@pytest.mark.parametrize("done", range(13))
def test_a_fine_bar_keeps_its_width(done):
    filled, rest = fine_bar(epoch(done), 10)

    assert len(filled) + len(rest) == 10


WORTH = {
    "the first": (epoch(1), None, True),
    "the same again": (epoch(1), epoch(1), False),
    "a little more": (epoch(41, 1000), epoch(1, 1000), False),
    "ten percent more": (epoch(101, 1000), epoch(1, 1000), True),
    "the last": (epoch(1000, 1000), epoch(999, 1000), True),
    "the last, said already": (epoch(12), epoch(12), False),
    "back to the beginning": (epoch(1), epoch(5), True),
    "another unit": (TrainingProgress(unit="round", done=1, total=2), epoch(5), True),
}


@pytest.mark.parametrize(("progress", "said", "worth"), WORTH.values(), ids=WORTH)
def test_what_is_worth_a_line(progress, said, worth):
    assert is_worth_a_line(progress, said) is worth
