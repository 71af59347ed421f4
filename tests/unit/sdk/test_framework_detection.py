"""The framework of a training is the one that its code imports, also in another module or through a library."""

import pytest

from paceline.sdk.submission.framework_detection import framework_of

NONE = ("python", "it imports none of torch, tensorflow and keras")


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("import torch\n", ("pytorch", "it imports torch")),
        ("import os, sys, torch as t\n", ("pytorch", "it imports torch")),
        ("from torch.nn import Linear\n", ("pytorch", "it imports torch")),
        ("def main():\n    import tensorflow as tf\n", ("tensorflow", "it imports tensorflow")),
        ("print 'Python 2'\nfrom keras import layers\n", ("keras", "it imports keras")),
        ("import lightning as L\n", ("pytorch", "it imports lightning")),
        ("import transformers\nimport tensorflow\n", ("tensorflow", "it imports tensorflow")),
        ("import torchio\n# import torch\nimport numpy  # not torch\n", NONE),
        ("", NONE),
    ],
)
def test_a_script_names_its_framework(tmp_path, text, framework):
    write(tmp_path, train=text)

    assert framework_of(str(tmp_path / "train.py"), "python3 train.py") == framework


def test_modules_beside_a_script_count_if_it_uses_them(tmp_path):
    write(tmp_path, train="import model\n", model="from layers.deep import net\n", other="import tensorflow\n")
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "deep.py").write_text("import model\nimport torch\n")

    assert framework_of(str(tmp_path / "train.py"), "") == ("pytorch", "layers/deep.py imports torch")


def test_in_a_folder_the_scripts_of_the_command_are_read(tmp_path):
    write(tmp_path, main="import torch\n", other="import tensorflow\n")

    assert framework_of(str(tmp_path), "python3 main.py --epochs 3") == ("pytorch", "it imports torch")
    assert framework_of(str(tmp_path), "make train") == NONE
    assert framework_of(str(tmp_path), "python3 missing.py") == NONE
