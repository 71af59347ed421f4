"""A machine whose clock a test can set: a library that is loaded before all others adds an offset to the time.

Only processes that are started with it see the offset, and all of them at the same moment, since they share the file
that it is read from. The time since boot is left alone, as the kernel leaves it alone when somebody sets the clock.
"""

import mmap
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long long *shift;

__attribute__((constructor)) static void load(void) {
    const char *path = getenv("CLOCK_SHIFT");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) shift = page;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    int failed = syscall(SYS_clock_gettime, clock, t);
    if (!failed && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) t->tv_sec += *shift;
    return failed;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """How far the clock of some processes is off."""

    library: Path
    file: Path

    @property
    def env(self) -> dict[str, str]:
        """What a process is started with whose clock is to be set."""
        return {"LD_PRELOAD": str(self.library), "CLOCK_SHIFT": str(self.file)}

    def set(self, seconds: int) -> None:
        """Set the clock so far ahead of the right time, or behind it, for all processes at once."""
        with self.file.open("r+b") as file, mmap.mmap(file.fileno(), 8) as page:
            page[:8] = struct.pack("q", seconds)


def build_shift(folder: Path) -> Shift:
    """Compile the library; the clock is right at first."""
    compiler = shutil.which("cc")
    assert compiler is not None, "needs a C compiler; `tools/setup test-all` brings one"
    source, library, file = folder / "shift.c", folder / "shift.so", folder / "shift"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), str(source)], check=True)
    file.write_bytes(struct.pack("q", 0))
    return Shift(library=library, file=file)
