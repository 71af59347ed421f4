"""The system calls that a container may not make, as a seccomp filter in classic BPF.

The list follows the default profiles of container runtimes: a denied call answers EPERM, clone3 answers ENOSYS (the C
library then uses clone, whose flags a filter can read), and programs of a foreign architecture are killed. A capability
permits the calls that need it. See docs/decisions/0020-a-system-call-filter-of-our-own.md.
"""

import errno
import struct
from collections.abc import Collection, Iterator
from functools import cache

EVERY_CAPABILITY = "ALL"
# Offsets of a call's number, its architecture and the lower half of its first argument (little-endian).
NUMBER, ARCHITECTURE, ARGUMENTS, ARGUMENT_BYTES = 0, 4, 16, 8
LOAD, RETURN, JUMP, IF_EQUAL, IF_AT_LEAST, IF_ANY_BIT = 0x20, 0x06, 0x05, 0x15, 0x35, 0x45
GROUP = 8
KILL, ALLOW = 0x80000000, 0x7FFF0000
DENY, ABSENT = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
# By the names of `uname -m` and of Kubernetes: the kernel's number of the architecture, and the column below.
MACHINES = {"amd64": (0xC000003E, 0), "arm64": (0xC00000B7, 1)}
X32 = 0x40000000
NAMESPACES = 0x7E020000
TIME_NAMESPACE = 0x80
TERMINAL_INPUT, TERMINAL_SELECTION = 0x5412, 0x541C
VSOCK = 40
PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)

# For each call its number on x86-64 and on arm64 (None: it does not exist), and the capabilities that permit it.
Call = tuple[int | None, int | None, tuple[str, ...]]
_ADMIN, _TIME, _MODULE = ("CAP_SYS_ADMIN",), ("CAP_SYS_TIME",), ("CAP_SYS_MODULE",)
DENIED: dict[str, Call] = {
    "_sysctl": (156, None, ()),
    "acct": (163, 89, ("CAP_SYS_PACCT",)),
    "add_key": (248, 217, ()),
    "adjtimex": (159, 171, _TIME),
    "bpf": (321, 280, ("CAP_SYS_ADMIN", "CAP_BPF")),
    "clock_adjtime": (305, 266, _TIME),
    "clock_settime": (227, 112, _TIME),
    "create_module": (174, None, _MODULE),
    "delete_module": (176, 106, _MODULE),
    "fanotify_init": (300, 262, _ADMIN),
    "finit_module": (313, 273, _MODULE),
    "fsconfig": (431, 431, _ADMIN),
    "fsmount": (432, 432, _ADMIN),
    "fsopen": (430, 430, _ADMIN),
    "fspick": (433, 433, _ADMIN),
    "get_kernel_syms": (177, None, ()),
    "init_module": (175, 105, _MODULE),
    "io_uring_enter": (426, 426, ()),
    "io_uring_register": (427, 427, ()),
    "io_uring_setup": (425, 425, ()),
    "ioperm": (173, None, ("CAP_SYS_RAWIO",)),
    "iopl": (172, None, ("CAP_SYS_RAWIO",)),
    "kexec_file_load": (320, 294, ()),
    "kexec_load": (246, 104, ()),
    "keyctl": (250, 219, ()),
    "lookup_dcookie": (212, 18, _ADMIN),
    "mount": (165, 40, _ADMIN),
    "mount_setattr": (442, 442, _ADMIN),
    "move_mount": (429, 429, _ADMIN),
    "nfsservctl": (180, 42, ()),
    "open_by_handle_at": (304, 265, ("CAP_DAC_READ_SEARCH",)),
    "open_tree": (428, 428, _ADMIN),
    "open_tree_attr": (467, 467, _ADMIN),
    "perf_event_open": (298, 241, ("CAP_SYS_ADMIN", "CAP_PERFMON")),
    "pivot_root": (155, 41, _ADMIN),
    "query_module": (178, None, ()),
    "quotactl": (179, 60, _ADMIN),
    "quotactl_fd": (443, 443, _ADMIN),
    "reboot": (169, 142, ("CAP_SYS_BOOT",)),
    "request_key": (249, 218, ()),
    "setdomainname": (171, 162, _ADMIN),
    "sethostname": (170, 161, _ADMIN),
    "setns": (308, 268, _ADMIN),
    "settimeofday": (164, 170, _TIME),
    "swapoff": (168, 225, ()),
    "swapon": (167, 224, ()),
    "sysfs": (139, None, ()),
    "syslog": (103, 116, ("CAP_SYS_ADMIN", "CAP_SYSLOG")),
    "umount2": (166, 39, _ADMIN),
    "uselib": (134, None, ()),
    "userfaultfd": (323, 282, ()),
    "ustat": (136, None, ()),
    "vhangup": (153, 58, ("CAP_SYS_TTY_CONFIG",)),
}
CLONE, CLONE3, UNSHARE, PERSONALITY, SOCKET, IOCTL = (56, 220), (435, 435), (272, 97), (135, 92), (41, 198), (16, 29)


def filter_for(architecture: str, capabilities: Collection[str]) -> bytes:
    """Return the filter of a container with these capabilities; empty on an architecture that has no table here."""
    return _filter(architecture, frozenset(capabilities)) if architecture in MACHINES else b""


@cache
def _filter(architecture: str, capabilities: frozenset[str]) -> bytes:
    kernel_name, column = MACHINES[architecture]
    program = [
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 1, 0, kernel_name),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        *([(IF_AT_LEAST, 0, 1, X32), (RETURN, 0, 0, DENY)] if architecture == "amd64" else []),
        *_denied(column, capabilities),
        *_conditional(column, has_namespaces=_is_open(_ADMIN, capabilities)),
        (RETURN, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


Instruction = tuple[int, int, int, int]


def _is_open(openers: tuple[str, ...], capabilities: frozenset[str]) -> bool:
    return bool(openers) and (EVERY_CAPABILITY in capabilities or not capabilities.isdisjoint(openers))


def _denied(column: int, capabilities: frozenset[str]) -> Iterator[Instruction]:
    """Deny calls by their numbers, in groups.

    When a container starts, the kernel runs the filter for every call that it has, so the paths must be short.
    """
    calls = ((x86 if column == 0 else arm, openers) for x86, arm, openers in DENIED.values())
    numbers = sorted(number for number, openers in calls if number is not None and not _is_open(openers, capabilities))
    groups = [numbers[start : start + GROUP] for start in range(0, len(numbers), GROUP)]
    remaining = sum(len(group) + 3 for group in groups)
    for group in groups:
        size = len(group)
        yield (IF_AT_LEAST, size + 2, 0, group[-1] + 1)
        yield from ((IF_EQUAL, size - place, 0, number) for place, number in enumerate(group))
        remaining -= size + 3
        yield (JUMP, 0, 0, remaining + 1)
        yield (RETURN, 0, 0, DENY)


def _conditional(column: int, *, has_namespaces: bool) -> Iterator[Instruction]:
    """Deny calls by the lower half of their arguments, which is all that the kernel reads of these."""
    if not has_namespaces:
        yield from ((IF_EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, ABSENT))
        yield from _unless(CLONE[column], 0, (IF_ANY_BIT, NAMESPACES))
        yield from _unless(UNSHARE[column], 0, (IF_ANY_BIT, NAMESPACES | TIME_NAMESPACE))
    yield from _unless(SOCKET[column], 0, (IF_EQUAL, VSOCK))
    yield from _unless(IOCTL[column], 1, (IF_EQUAL, TERMINAL_INPUT), (IF_EQUAL, TERMINAL_SELECTION))
    allowed = [part for value in PERSONALITIES for part in ((IF_EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW))]
    yield from _call(PERSONALITY[column], 0, [*allowed, (RETURN, 0, 0, DENY)])


def _unless(number: int, argument: int, *tests: tuple[int, int]) -> Iterator[Instruction]:
    """Allow a call unless one of the tests holds for its argument."""
    denials = [part for test, value in tests for part in ((test, 0, 1, value), (RETURN, 0, 0, DENY))]
    yield from _call(number, argument, [*denials, (RETURN, 0, 0, ALLOW)])


def _call(number: int, argument: int, body: list[Instruction]) -> Iterator[Instruction]:
    yield (IF_EQUAL, 0, len(body) + 1, number)
    yield (LOAD, 0, 0, ARGUMENTS + ARGUMENT_BYTES * argument)
    yield from body
