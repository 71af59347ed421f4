"""What a training needs is made before it, is never somebody else's, and is taken back when it is refused."""

import pytest
from tests.unit.sdk.conftest import CONFIG_MAPS, SECRETS

from paceline.errors import AlreadyExists, Invalid, PacelineError
from paceline.model.well_known_labels import APP
from paceline.sdk.submission.train import TrainingPlan, submit, upload_source


def plan():
    git = {"url": "https://example.org/code.git", "revision": "", "directory": ""}
    return TrainingPlan(name="mnist", values={"git": git, "command": "true"}, git_user="me", password="correct-horse")


def named(**told):
    return TrainingPlan(
        name="mnist", repo="mine", values={"git": {"url": "", "revision": "", **told}, "command": "true"}
    )


def test_what_is_told_beside_a_name_of_code_comes_first():
    saved = {"url": "https://example.org/code.git", "revision": "v1", "directory": "train", "secret": "keys"}

    assert named().with_repo(saved).values["git"] == saved
    assert named(revision="main").with_repo(saved).values["git"] == {**saved, "revision": "main"}


def test_a_training_with_named_code_is_checked_before_the_name_is_looked_up():
    named().check()

    with pytest.raises(Invalid, match="a branch, a tag or a full commit"):
        named(revision="--upload-pack=x").check()


def there(stage, **labels):
    stage.put(
        SECRETS, {"metadata": {"name": "mnist-git", "namespace": "default", "labels": labels}, "data": {"a": "b"}}
    )


def test_a_secret_of_somebody_else_is_left_alone(stage, session):
    there(stage)

    with pytest.raises(AlreadyExists, match="secret mnist-git already exists and belongs to another object"):
        upload_source(session, plan())
    assert (stage.patched, stage.deleted) == ([], [])


def test_a_secret_of_an_earlier_try_takes_the_new_password(stage, session):
    there(stage, **{APP: "mnist"})

    upload_source(session, plan())

    assert stage.patched == [{"stringData": {"username": "me", "password": "correct-horse"}}]


@pytest.mark.parametrize("is_new", [True, False], ids=["made for it", "there before"])
def test_a_refused_training_takes_back_what_was_made_for_it_and_nothing_else(stage, session, is_new):
    if not is_new:
        there(stage, **{APP: "mnist"})
    stage.refused.add("mnist")
    ready = upload_source(session, plan())

    with pytest.raises(PacelineError):
        submit(session, ready)
    assert ((SECRETS, "mnist-git") in stage.objects) is not is_new


def test_code_is_not_taken_from_a_config_map_of_somebody_else(stage, session, tmp_path):
    (tmp_path / "train.py").write_text("print(1)")
    code = TrainingPlan(name="mnist", values={"command": "python3 train.py"}, path=str(tmp_path / "train.py"))
    name = upload_source(session, code).values["archive"]["configMap"]
    stage.put(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "default"}})

    with pytest.raises(AlreadyExists, match="belongs to another object"):
        upload_source(session, code)
