"""What the name of a metric says about it: whether less is better."""

import re

# Words of a name, however they are joined: val_loss, train/Accuracy, top-1.
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
LESS = frozenset(
    {"loss", "cost", "error", "err", "mae", "mse", "rmse", "mape", "ppl", "perplexity", "wer", "cer", "fid"}
)
MORE = frozenset(
    {
        "acc",
        "accuracy",
        "auc",
        "f1",
        "precision",
        "recall",
        "bleu",
        "rouge",
        "map",
        "iou",
        "miou",
        "dice",
        "reward",
        "r2",
    }
)
# `f1` and `r2` are one word each.
WHOLE = re.compile(r"[A-Za-z]+\d*|\d+")


def less_is_better(name: str) -> bool | None:
    """Return whether a lower value is the better one; None if the name does not say."""
    tokens = {token.lower() for pattern in (WORD, WHOLE) for token in pattern.findall(name)}
    if tokens & LESS:
        return True
    return False if tokens & MORE else None
