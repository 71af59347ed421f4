"""Image names become environments, or a line that says how they would."""

from pathlib import Path

import pytest

from paceline.node.host_info import CannotStart
from paceline.node.images import BuiltEnvironment, Images, backed_off, choose, never_pulled
from paceline.testing.sim.effects import SimFiles
from paceline.testing.sim.processes import StaticEnvironments
from tests.unit.node.pods import HOST, container


@pytest.mark.parametrize(
    ("image", "environment"),
    [
        ("python", "host"),
        ("python:3.11-slim", "host"),
        ("docker.io/library/python:3.11", "host"),
        ("library/busybox", "host"),
        ("ubuntu@sha256:abc", "host"),
        ("rockylinux:9", "host"),
        ("redhat/ubi9:latest", "host"),
        ("pytorch/pytorch:2.13.0", "pytorch"),
        ("docker.io/pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", "pytorch"),
        ("tensorflow/tensorflow:2.14.0-gpu", "tensorflow"),
        ("registry.example/tensorflow-samples/tf-mnist-k8s:gpu", "tensorflow"),
        ("registry.example/tensorflow-samples/tensorboard:1.1.0", "tensorboard"),
        ("t9kpublic/tensorboard:2.17.0", "tensorboard"),
        ("t9kpublic/pytorch-1.13.0:sdk-0.5.2", "pytorch"),
        ("jupyter/minimal-notebook:latest", "jupyter"),
        ("mpi4py:4", "mpi"),
        ("tensorflowish", None),
        ("acme/pytorch", None),
        ("registry.example:5000/python:3", None),
        ("pythonic", None),
        ("acme/secret:7", None),
        ("", None),
    ],
)
def test_shipped_images(image, environment):
    assert choose(image, ()) == environment


@pytest.mark.parametrize(
    ("pattern", "image", "matches"),
    [
        ("pytorch/*", "pytorch/pytorch:2.1", True),
        ("pytorch/pytorch", "pytorch/pytorch:2.1", True),
        ("pytorch/pytorch:2.1", "pytorch/pytorch:2.2", False),
        ("pytorch/pytorch:2.*", "docker.io/pytorch/pytorch:2.2", True),
        ("registry.example:5000/train", "registry.example:5000/train:v1", True),
        ("train", "registry.example:5000/train", False),
        ("*", "anything/at:all", True),
    ],
)
def test_a_pattern_is_read_as_a_shell_would_and_without_a_tag_stands_for_all(pattern, image, matches):
    assert (choose(image, [(pattern, "/env")]) == "/env") is matches


def test_the_users_rows_come_first_and_in_their_order():
    rows = [("python:3.8", "/old"), ("python", "/new"), ("python", "/never")]

    assert choose("python:3.8", rows) == "/old"
    assert choose("python:3.11", rows) == "/new"


def opened(image, *rows, files=None, environments=None, **container):
    images = Images(rows=rows, environments=environments or StaticEnvironments(), host=HOST, files=files or SimFiles())
    return images.environment_of({"image": image, **container})


def venv(files, folder, home):
    files.make_folder(Path(folder) / "bin")
    files.overwrite(Path(folder) / "pyvenv.cfg", f"home = {home}\nversion_info = 3.11.7\n".encode())
    return files


def test_the_host_environment_is_the_machines_programs_and_our_own_interpreter():
    found = opened("python")

    assert found.name == "host"
    assert found.path[0] == "/venv/bin"
    assert "/usr/bin" in found.path
    assert found.folders == ("/venv", "/python")


def test_a_virtual_environment_comes_first_and_brings_its_interpreter():
    files = venv(SimFiles(), "/envs/torch", "/opt/py/bin")
    found = opened("torch", ("torch", "/envs/torch"), files=files)

    assert found.path[0] == "/envs/torch/bin"
    assert found.folders == ("/envs/torch", "/opt/py")
    assert dict(found.env) == {"VIRTUAL_ENV": "/envs/torch"}


def test_an_image_that_maps_to_nothing_is_said_with_the_line_that_would_map_it():
    with pytest.raises(CannotStart) as caught:
        opened("acme/secret:7")

    assert caught.value.reason == "ErrImagePull"
    assert "paceline up --image 'acme/secret:7=host'" in str(caught.value)


def test_an_environment_that_is_not_there_is_said():
    with pytest.raises(CannotStart, match="/gone, which has no bin folder"):
        opened("x", ("x", "/gone"))


LACKING = CannotStart("ErrImagePull", "map it")


def test_an_image_without_an_environment_is_backed_off_from():
    found = backed_off(container(image="acme/x"), LACKING)

    assert found.reason == "ImagePullBackOff"
    assert str(found) == 'Back-off pulling image "acme/x": ErrImagePull: map it'


def test_an_image_that_must_not_be_pulled_is_not_present():
    found = never_pulled(container(image="acme/x", imagePullPolicy="Never"), LACKING)

    assert found.reason == "ErrImageNeverPull"
    assert str(found) == 'Container image "acme/x" is not present with pull policy of Never: map it'
    assert never_pulled(container(image="acme/x", imagePullPolicy="IfNotPresent"), LACKING) is LACKING


class Busy:
    """A workshop in which something is always being built."""

    def open(self, name, *, policy):
        raise CannotStart(
            "ContainerCreating" if policy != "Never" else "ErrImagePull", f"building environment {name}: half done"
        )

    def listen(self, on_change):
        pass


class Stocked:
    """A workshop that has all."""

    def open(self, name, *, policy):
        return BuiltEnvironment(folder=Path("/built") / name, note=f"looked, being told {policy}" if policy else "")

    def listen(self, on_change):
        pass


def test_a_container_whose_environment_is_being_built_waits_with_how_far_it_is():
    with pytest.raises(CannotStart) as caught:
        opened("pytorch/pytorch:2", environments=Busy())

    assert caught.value.reason == "ContainerCreating"
    assert str(caught.value) == 'Pulling image "pytorch/pytorch:2": building environment pytorch: half done'


def test_a_container_that_is_never_pulled_for_does_not_have_its_environment_built():
    with pytest.raises(CannotStart) as caught:
        opened("pytorch/pytorch:2", environments=Busy(), imagePullPolicy="Never")

    assert caught.value.reason == "ErrImageNeverPull"


def test_a_built_environment_is_used_as_any_virtual_environment_is():
    files = venv(SimFiles(), "/built/pytorch", "/opt/py/bin")

    assert opened("pytorch/pytorch", files=files, environments=Stocked()).path[0] == "/built/pytorch/bin"
    told = opened("pytorch/pytorch", files=files, environments=Stocked(), imagePullPolicy="Always")
    assert told.note == "looked, being told Always"


def test_a_requirements_file_is_built_and_a_folder_is_not():
    files = SimFiles()
    files.make_folder(Path("/home"))
    files.overwrite(Path("/home/r.txt"), b"six")
    with pytest.raises(CannotStart, match="building environment /home/r"):
        opened("x", ("x", "/home/r.txt"), files=files, environments=Busy())


def blocked(image):
    with pytest.raises(CannotStart) as caught:
        opened(image, imagePullPolicy="Never")
    return caught.value


@pytest.mark.parametrize(
    "image", ["team/tool", "localhost:5000/a/b-c:v1.2", "Registry.example:443/x__y", "tool@sha256:" + "a" * 64]
)
def test_a_name_that_can_be_an_images_is_looked_for(image):
    assert blocked(image).reason == "ErrImageNeverPull"


@pytest.mark.parametrize("image", ["no name", "Team/Tool", "tool:", "/tool", "tool@sha256:xyz", "a//b"])
def test_a_name_that_no_image_can_have_is_said(image):
    found = blocked(image)

    assert found.reason == "InvalidImageName"
    assert str(found).startswith(f'Failed to apply default image tag "{image}": couldn\'t parse image name')
