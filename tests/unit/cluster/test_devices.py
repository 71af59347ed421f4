"""What devices a machine is said to have: declared ones, and GPUs as NVIDIA's library counts them."""

import ctypes
import os
import shutil
import stat
import subprocess

import pytest

from paceline.cluster.config import configured_devices, device_row
from paceline.errors import Invalid
from paceline.host.gpu_stats import GPUMeter
from paceline.host.resources import find_device_pools
from paceline.node.host_info import Device, DevicePool
from paceline.node.usage.recorder import GPUUsage
from paceline.settings import Settings

# As much of the library as counting takes: two GPUs, the second of which does not answer when `broken` is set.
LIBRARY = """
#include <stdio.h>
#include <string.h>
static long handles[2] = {0, 1};
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = &handles[index]; return index == BROKEN; }
int nvmlDeviceGetUUID(long *handle, char *text, unsigned size) { snprintf(text, size, "GPU-%ld", *handle); return 0; }
int nvmlDeviceGetUtilizationRates(long *handle, unsigned *rates) { rates[0] = 40 + *handle; rates[1] = 7; return 0; }
int nvmlDeviceGetMemoryInfo(long *handle, unsigned long long *bytes) {
  bytes[0] = 99; bytes[1] = 79; bytes[2] = 20 + *handle; return 0; }
int nvmlDeviceGetMinorNumber(long *handle, unsigned *minor) { *minor = 4000 + *handle; return 0; }
"""


@pytest.fixture
def nvml(tmp_path):
    """Build a library that answers as NVIDIA's does; only `make test-all` brings the compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")

    def build(init=0, broken=-1):
        source, library = tmp_path / "nvml.c", tmp_path / f"nvml{init}{broken}.so"
        source.write_text(LIBRARY)
        words = (f"-DINIT={init}", f"-DBROKEN={broken}", "-shared", "-fPIC", "-w")
        subprocess.run([compiler, *words, "-o", str(library), str(source)], check=True)
        return lambda _name: ctypes.CDLL(str(library))

    return build


def absent(name):
    raise OSError(name)


def declared(*rows):
    return find_device_pools(rows, load=absent)


def test_without_the_library_there_are_no_gpus():
    assert declared() == ()


@pytest.mark.slow
def test_the_library_counts_gpus_and_names_them(nvml):
    (gpus,) = find_device_pools((), load=nvml())

    assert gpus.resource == "nvidia.com/gpu"
    assert gpus.devices == (Device(number=0, name="GPU-0"), Device(number=1, name="GPU-1"))


@pytest.mark.slow
def test_a_gpu_that_does_not_answer_is_given_to_nobody(nvml):
    (gpus,) = find_device_pools((), load=nvml(broken=0))

    assert [device.number for device in gpus.devices] == [1]


@pytest.mark.slow
def test_a_library_without_a_driver_is_as_good_as_none(nvml):
    assert find_device_pools((), load=nvml(init=9)) == ()


@pytest.mark.slow
def test_what_is_declared_stands_instead_of_what_is_found(nvml):
    (gpus,) = find_device_pools((("nvidia.com/gpu", "1"),), load=nvml())

    assert gpus.devices == (Device(number=0),)


@pytest.mark.slow
def test_the_library_says_how_busy_gpus_are_and_how_full(nvml):
    meter = GPUMeter(load=nvml(broken=0))

    assert meter.measure() == {"GPU-1": GPUUsage(busy=0.41, memory_bytes=21)}
    assert GPUMeter(load=nvml(init=9)).measure() == {}


def test_without_the_library_no_gpu_is_measured():
    assert GPUMeter(load=absent).measure() == {}


def test_a_number_declares_that_many():
    assert declared(("example.com/fpga", "2")) == (
        DevicePool(resource="example.com/fpga", devices=(Device(number=0), Device(number=1))),
    )


def test_device_nodes_declare_one_device_each():
    row = device_row("example.com/fpga=/dev/null+/dev/zero,/dev/full")

    assert declared(row)[0].devices == (
        Device(number=0, nodes=("/dev/null", "/dev/zero")),
        Device(number=1, nodes=("/dev/full",)),
    )


WRONG = {
    "no vendor": ("gpu=4", "write RESOURCE=COUNT"),
    "a resource of Kubernetes itself": ("kubernetes.io/gpu=4", "write RESOURCE=COUNT"),
    "no number": ("example.com/gpu=", "write RESOURCE=COUNT"),
    "less than none": ("example.com/gpu=-1", "write RESOURCE=COUNT"),
    "a fraction": ("example.com/gpu=1.5", "write RESOURCE=COUNT"),
    "too many": ("example.com/gpu=5000", "at most 4096"),
    "a folder": ("example.com/gpu=/dev", "/dev is not a device node"),
    "nothing there": ("example.com/gpu=/dev/null,/dev/nowhere", "/dev/nowhere is not a device node"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_declared_is_said(text, said):
    with pytest.raises(Invalid, match=said):
        device_row(text)


def settings_with(tmp_path, text, *rows):
    (tmp_path / "settings.yaml").write_text(text)
    return Settings(home=tmp_path, devices=rows)


def test_the_settings_file_declares_devices_and_what_is_typed_goes_before_it(tmp_path):
    text = "devices: {nvidia.com/gpu: 4, example.com/fpga: [/dev/null, /dev/zero], example.com/one: /dev/full}"
    chosen = configured_devices(settings_with(tmp_path, text, ("nvidia.com/gpu", "2")))

    assert dict(chosen) == {
        "nvidia.com/gpu": "2",
        "example.com/fpga": "/dev/null,/dev/zero",
        "example.com/one": "/dev/full",
    }


@pytest.mark.parametrize("text", ["devices: 4", "devices: {a.b/c: yes}", "devices: {a.b/c: [4]}", "devices: {4: 4}"])
def test_a_settings_file_that_declares_nonsense_is_named(tmp_path, text):
    with pytest.raises(Invalid, match=r"settings.yaml: devices"):
        configured_devices(settings_with(tmp_path, text))


@pytest.mark.skipif(os.geteuid() != 0, reason="making device nodes takes root")
def test_a_node_that_somebody_made_is_one(tmp_path):
    os.mknod(tmp_path / "dummy0", stat.S_IFCHR | 0o666, os.makedev(1, 3))

    assert device_row(f"example.com/dummy={tmp_path}/dummy0") == ("example.com/dummy", f"{tmp_path}/dummy0")
