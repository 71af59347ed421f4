"""The user's `settings.yaml`, and the flags of `paceline up` that mean the same: images, devices, log retention.

In     the text of settings.yaml and command-line flags.
Out    typed settings, or errors with path, value and a hint.
Never  starts anything.
"""

import re
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from paceline.apimachinery.builtin.scheduling import is_extended
from paceline.apimachinery.name_validation import key_problem
from paceline.apimachinery.quantity import parse
from paceline.environments.specs import EnvironmentSpecs, spec_of
from paceline.errors import Fault, Invalid
from paceline.model.retention import EventPolicy, RecordPolicy, RetentionPolicy
from paceline.node.images import HOST, SHIPPED
from paceline.settings import Row, Settings

SETTINGS_FILE = "settings.yaml"
# Each table of the file, and what it is for.
SECTIONS: Mapping[str, str] = {
    "devices": "Devices that pods can request; they replace those that the agent finds. `paceline up --device` wins.",
    "environments": "Environments of your own, which `images` can name.",
    "history": "How much is kept of deleted pods (`age`, `size`, number of `pods`), of jobs (`jobs`, `jobAge`) and "
    "of events (`events`, `eventAge`).",
    "images": "The environment that the containers of an image run in; these rows come before the shipped ones. "
    "`paceline up --image` wins.",
}
FILE_HINT = "write a table of settings, as in `images: {'my-image': host}`"
IMAGES_HINT = (
    "write a table of patterns and environments, as in `images: {'pytorch/*': /path/to/venv, 'my-image': host}`"
)
ENVIRONMENTS_HINT = (
    "write a table of names, each with a requirements file or a list of packages, as in "
    "`environments: {mine: [torch==2.13.0, pandas], ours: ~/project/requirements.txt}`"
)
IMAGE_HINT = "write PATTERN=ENVIRONMENT, for example 'pytorch/*=pytorch', 'acme/*=/path/to/venv' or 'my-image:*=host'"
MAX_DEVICES = 4096
DEVICE_HINT = (
    "write RESOURCE=COUNT or RESOURCE=NODE,NODE with one device node for each device, for example "
    "'nvidia.com/gpu=4' or 'example.com/fpga=/dev/fpga0,/dev/fpga1'"
)
DEVICES_HINT = (
    "write a table of resources, each with a number or a list of device nodes, as in "
    "`devices: {nvidia.com/gpu: 4, example.com/fpga: [/dev/fpga0, /dev/fpga1]}`"
)
HISTORY_HINT = (
    "write how much is kept of deleted pods, jobs and events, as in "
    "`history: {age: 30d, size: 10Gi, pods: 1000, jobs: 10000, jobAge: 90d, events: 10000, eventAge: 7d}`"
)
AGE_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
EXTERNAL_ADDRESS = "--external-address"

# A pattern and its environment.
ImageRow = tuple[str, str]


def read_section(settings: Settings, name: str, hint: str) -> dict[str, Any]:
    """Return one table of the file, empty when the file or table is missing; raise Invalid or Malformed."""
    path = settings.home / SETTINGS_FILE
    table = _read_file(path).get(name) or {}
    if not isinstance(table, dict) or not all(isinstance(key, str) for key in table):
        raise _invalid(f"{path}: {name}", table, hint)
    return table


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        # Those that use the folder report what is wrong with it.
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(str(path), None, f"cannot be read: {error}") from error
    # Imported here: clusters without such a file need not wait for the parser at their start.
    trees = tuple(import_module("paceline.apimachinery.yaml_reader").read_documents(text, str(path)))
    sections = trees[0].value if trees else {}
    if not isinstance(sections, dict):
        raise _invalid(str(path), sections, FILE_HINT)
    for name, value in sections.items():
        if name not in SECTIONS:
            raise _invalid(f"{path}: {name}", value, f"is not a setting; the settings are {', '.join(SECTIONS)}")
    return sections


def _invalid(path: str, value: Any, hint: str) -> Invalid:
    return Invalid((Fault(path, value, hint),))


def configured_images(settings: Settings) -> tuple[ImageRow, ...]:
    """Return all rows of the image table, those of `paceline up --image` first; raise Invalid or Malformed."""
    path, environments = settings.home / SETTINGS_FILE, configured_environments(settings)
    table = read_section(settings, "images", IMAGES_HINT)
    if not all(isinstance(environment, str) for environment in table.values()):
        raise _invalid(f"{path}: images", table, IMAGES_HINT)
    rows = (
        image_row(f"{pattern}={environment}", environments, where=f"{path}: images.{pattern}")
        for pattern, environment in table.items()
    )
    return (*settings.images, *rows)


def configured_environments(settings: Settings) -> EnvironmentSpecs:
    """Return the environments that an image can be mapped to: those of settings.yaml and the built-in ones."""
    path = settings.home / SETTINGS_FILE
    table = read_section(settings, "environments", ENVIRONMENTS_HINT)
    return EnvironmentSpecs(
        custom={name: _requirements(f"{path}: environments.{name}", name, value) for name, value in table.items()}
    )


def image_row(text: str, environments: EnvironmentSpecs, where: str = "--image") -> ImageRow:
    """Return one `PATTERN=ENVIRONMENT` as a row; raise Invalid when it is malformed."""
    pattern, sign, environment = text.partition("=")
    if not sign or not pattern or not environment:
        raise _invalid(where, text, IMAGE_HINT)
    if environment == HOST:
        return pattern, environment
    if "/" in environment or environment.startswith(("~", ".")):
        environment = str(Path(environment).expanduser().absolute())
    if Path(environment).is_absolute() and not Path(environment).is_file():
        if not (Path(environment) / "bin").is_dir():
            hint = (
                "the environment must be `host`, the folder of a virtual environment (with bin/python in it), "
                f"a requirements file, or one of {', '.join(environments.names())}"
            )
            raise _invalid(where, text, hint)
        return pattern, environment
    try:
        environments.read(environment)
    except Invalid as error:
        raise _invalid(where, text, "; ".join(fault.hint for fault in error.faults)) from error
    return pattern, environment


def _requirements(where: str, name: str, value: Any) -> tuple[str, ...]:
    """Return the requirements of an environment, which are a list or in a file."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        lines = value
    elif isinstance(value, str):
        path = Path(value).expanduser()
        if not path.is_absolute() or not path.is_file():
            raise _invalid(where, value, "there is no such file; write its absolute path")
        lines = path.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ").splitlines()
    else:
        raise _invalid(where, value, ENVIRONMENTS_HINT)
    try:
        return spec_of(name, lines, folder=Path("/")).lines
    except Invalid as error:
        raise _invalid(where, value, "; ".join(fault.hint for fault in error.faults)) from error


def all_rows(settings: Settings) -> tuple[tuple[str, str, str], ...]:
    """Return the image table in the order in which it is searched: pattern, environment, and source of each row."""
    flag_count = len(settings.images)
    configured = (
        (*row, "paceline up" if number < flag_count else SETTINGS_FILE)
        for number, row in enumerate(configured_images(settings))
    )
    return (*configured, *((*row, "shipped") for row in SHIPPED))


def configured_devices(settings: Settings) -> tuple[Row, ...]:
    """Return every declared resource, those of `paceline up --device` first; raise Invalid or Malformed."""
    path = settings.home / SETTINGS_FILE
    table = read_section(settings, "devices", DEVICES_HINT)
    rows = {resource: _device_row(path, resource, devices) for resource, devices in table.items()}
    return tuple((rows | dict(settings.devices)).items())


def _device_row(path: Path, resource: str, devices: Any) -> str:
    where = f"{path}: devices.{resource}"
    values = devices if isinstance(devices, list) else [devices]
    is_number = isinstance(devices, int) and not isinstance(devices, bool)
    if not is_number and not all(isinstance(value, str) and value.startswith("/") for value in values):
        raise _invalid(where, devices, DEVICES_HINT)
    return device_row(f"{resource}={','.join(map(str, values))}", where)[1]


def device_row(text: str, where: str = "--device") -> Row:
    """Return one `RESOURCE=DEVICES` as a row; raise Invalid when it is malformed."""
    resource, sign, devices = text.partition("=")
    if not sign or not is_extended(resource) or key_problem(resource):
        raise _invalid(where, text, DEVICE_HINT)
    if devices.isdecimal():
        if len(devices) > len(str(MAX_DEVICES)) or int(devices) > MAX_DEVICES:
            raise _invalid(where, text, f"at most {MAX_DEVICES}; {DEVICE_HINT}")
        return resource, devices
    paths = [path for device in devices.split(",") for path in device.split("+")]
    if not all(path.startswith("/") for path in paths):
        raise _invalid(where, text, DEVICE_HINT)
    if missing := [path for path in paths if not _is_device(Path(path))]:
        raise _invalid(where, text, f"{missing[0]} is not a device node of this machine")
    return resource, devices


def _is_device(path: Path) -> bool:
    try:
        return path.is_char_device() or path.is_block_device()
    except OSError:
        return False


def configured_retention(settings: Settings) -> RetentionPolicy:
    """Return the retention policy of settings.yaml, or the default one; raise Invalid when it is malformed."""
    fields = _read_history(settings)
    others = {*RECORD_FIELDS.values(), *EVENT_FIELDS.values()}
    return RetentionPolicy(**{name: value for name, value in fields.items() if name not in others})


def configured_records(settings: Settings) -> RecordPolicy:
    """Return how many records of jobs are kept; raise Invalid when settings.yaml is malformed."""
    fields = _read_history(settings)
    return RecordPolicy(**{name: fields[field] for name, field in RECORD_FIELDS.items() if field in fields})


def configured_events(settings: Settings) -> EventPolicy:
    """Return how many events are kept; raise Invalid when settings.yaml is malformed."""
    fields = _read_history(settings)
    return EventPolicy(**{name: fields[field] for name, field in EVENT_FIELDS.items() if field in fields})


def _read_history(settings: Settings) -> dict[str, Any]:
    """Return the checked fields of the section `history`."""
    table = read_section(settings, "history", HISTORY_HINT)
    where = f"{settings.home / SETTINGS_FILE}: history"
    fields = {}
    for name, value in table.items():
        if name not in HISTORY_FIELDS:
            raise _invalid(f"{where}.{name}", value, f"is not a setting; {HISTORY_HINT}")
        field, read, hint = HISTORY_FIELDS[name]
        try:
            fields[field] = read(value)
        except ValueError as error:
            raise _invalid(f"{where}.{name}", value, hint) from error
    return fields


def _age(value: Any) -> timedelta:
    parts = re.fullmatch(r"(\d+)([smhd])", str(value))
    if parts is None:
        raise ValueError(value)
    return timedelta(seconds=int(parts[1]) * AGE_UNITS[parts[2]])


def _size(value: Any) -> int:
    return _not_negative(int(parse(str(value))))


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(value)  # noqa: TRY004 - callers handle one error for every malformed value
    return _not_negative(value)


def _not_negative(value: int) -> int:
    if value < 0:
        raise ValueError(value)
    return value


HISTORY_FIELDS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "age": ("age", _age, "write a duration, such as 12h or 30d"),
    "size": ("bytes", _size, "write a size, such as 500Mi or 10Gi"),
    "pods": ("pods", _count, "write a whole number"),
    "jobs": ("jobs", _count, "write a whole number"),
    "jobAge": ("job_age", _age, "write a duration, such as 30d or 90d"),
    "events": ("events", _count, "write a whole number"),
    "eventAge": ("event_age", _age, "write a duration, such as 1h or 7d"),
}
# The fields of a record policy and of an event policy, as they are read above.
RECORD_FIELDS = {"jobs": "jobs", "age": "job_age"}
EVENT_FIELDS = {"events": "events", "age": "event_age"}


def external_address(text: str) -> str:
    """Return an address of this machine; raise Invalid when it is not one."""
    try:
        address = ip_address(text)
    except ValueError:
        raise _invalid(EXTERNAL_ADDRESS, text, "write an address of this machine, such as 192.168.1.5") from None
    if address.is_unspecified:
        raise _invalid(EXTERNAL_ADDRESS, text, "specify one address of this machine")
    with socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6) as sock:
        try:
            sock.bind((str(address), 0))
        except OSError as error:
            hint = f"this machine has no such address ({error.strerror}); `ip addr` lists its addresses"
            raise _invalid(EXTERNAL_ADDRESS, text, hint) from error
    return str(address)


def is_loopback(address: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    return ip_address(address).is_loopback
