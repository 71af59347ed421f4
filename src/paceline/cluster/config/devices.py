"""Devices that people declare, by `paceline up --device` and in settings.yaml."""

from pathlib import Path
from typing import Any

from paceline.apimachinery.builtin.qos import is_extended
from paceline.apimachinery.name_validation import key_problem
from paceline.cluster.config.config_file import NAME, chosen_table
from paceline.errors import Fault, Invalid
from paceline.settings import Row, Settings

MOST = 4096
HINT = (
    "write RESOURCE=COUNT or RESOURCE=NODE,NODE with one device node for each device, for example "
    "'nvidia.com/gpu=4' or 'example.com/fpga=/dev/fpga0,/dev/fpga1'"
)
TABLE_HINT = (
    "write a table of resources, each with a number or a list of device nodes, as in "
    "`devices: {nvidia.com/gpu: 4, example.com/fpga: [/dev/fpga0, /dev/fpga1]}`"
)


def chosen_devices(settings: Settings) -> tuple[Row, ...]:
    """Give every resource that is declared, `paceline up --device` first; Invalid or Malformed say why not."""
    path = settings.home / NAME
    table = chosen_table(settings, "devices", TABLE_HINT)
    rows = {resource: _row(path, resource, devices) for resource, devices in table.items()}
    return tuple((rows | dict(settings.devices)).items())


def _row(path: Path, resource: str, devices: Any) -> str:
    where = f"{path}: devices.{resource}"
    each = devices if isinstance(devices, list) else [devices]
    is_number = isinstance(devices, int) and not isinstance(devices, bool)
    if not is_number and not all(isinstance(one, str) and one.startswith("/") for one in each):
        raise Invalid((Fault(where, devices, TABLE_HINT),))
    return device_row(f"{resource}={','.join(map(str, each))}", where)[1]


def device_row(text: str, where: str = "--device") -> Row:
    """Read one `RESOURCE=DEVICES`; Invalid says what is wrong with it."""
    resource, sign, devices = text.partition("=")
    if not sign or not is_extended(resource) or key_problem(resource):
        raise Invalid((Fault(where, text, HINT),))
    if devices.isdecimal() and len(devices) <= len(str(MOST)) and int(devices) <= MOST:
        return resource, devices
    paths = [path for one in devices.split(",") for path in one.split("+")]
    if devices.isdecimal() or not all(path.startswith("/") for path in paths):
        raise Invalid((Fault(where, text, f"at most {MOST}; {HINT}" if devices.isdecimal() else HINT),))
    if missing := [path for path in paths if not _is_device(Path(path))]:
        raise Invalid((Fault(where, text, f"{missing[0]} is no device node of this machine"),))
    return resource, devices


def _is_device(path: Path) -> bool:
    try:
        return path.is_char_device() or path.is_block_device()
    except OSError:
        return False
