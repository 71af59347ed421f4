"""A program that does not want to go: one trick by name, then it says `up`. Also those that are tame.

Arguments: a mark to be found by, the name of the trick. Whatever a trick leaves behind must go with its container.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time

ASKABLE = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1)
SUBREAPER, DEATH_SIGNAL, NEW_USER, NEW_PIDS = 36, 1, 0x10000000, 0x20000000
libc = ctypes.CDLL(None)


def be_deaf():
    for number in ASKABLE:
        signal.signal(number, signal.SIG_IGN)


def stay():
    while True:
        time.sleep(3600)


def say_up():
    os.write(1, b"up\n")


def fork(then):
    """Run something in a child that never comes back."""
    if os.fork() == 0:
        then()
        os._exit(0)


def tame():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    say_up()
    stay()


def deaf():
    be_deaf()
    say_up()
    stay()


def session():
    """Children in sessions and groups of their own, which no signal to a group reaches."""

    def child():
        os.setsid()
        be_deaf()
        stay()

    for _ in range(3):
        fork(child)
    say_up()
    stay()


def daemon():
    """Forks twice and leaves no parent, no terminal and no open file."""

    def child():
        os.setsid()
        fork(grandchild)

    def grandchild():
        be_deaf()
        os.closerange(0, 256)
        os.chdir("/")
        stay()

    fork(child)
    say_up()
    tame_stay()


def tame_stay():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    stay()


def storm():
    """Never two moments the same process: each forks the next and goes."""

    def run():
        be_deaf()
        os.setsid()
        for _ in range(1_000_000):
            time.sleep(0.02)
            # Not waited for: whoever adopts it may.
            with contextlib.suppress(BlockingIOError):
                if os.fork():
                    os._exit(0)

    for _ in range(8):
        fork(run)
    say_up()
    stay()


def keeper_of_pipes():
    """Ends when asked to; a child keeps its output open and says nothing."""

    def child():
        os.setsid()
        be_deaf()
        stay()

    fork(child)
    say_up()
    tame_stay()


def closer_of_pipes():
    say_up()
    be_deaf()
    os.closerange(0, 3)
    stay()


def stopped():
    """Stops its children and itself: a question to stop is never heard."""
    for _ in range(2):
        fork(lambda: os.kill(os.getpid(), signal.SIGSTOP))
    say_up()
    os.kill(os.getpid(), signal.SIGSTOP)
    stay()


def adopter():
    """Adopts its own orphans, so that they never come to the container's first process."""
    libc.prctl(SUBREAPER, 1, 0, 0, 0)
    libc.prctl(DEATH_SIGNAL, 0, 0, 0, 0)

    def child():
        fork(grandchild)

    def grandchild():
        os.setsid()
        be_deaf()
        stay()

    for _ in range(3):
        fork(child)
    be_deaf()
    say_up()
    stay()


def leaver():
    """Ends at once, well, and leaves a child with its output behind."""

    def child():
        os.setsid()
        be_deaf()
        stay()

    fork(child)
    say_up()
    os._exit(0)


def nested():
    """Goes into namespaces of its own where the kernel lets it."""
    be_deaf()
    if libc.unshare(NEW_USER | NEW_PIDS) == 0:
        for _ in range(1):
            fork(deaf_child)
    say_up()
    stay()


def deaf_child():
    be_deaf()
    os.setsid()
    stay()


def dead():
    """A hundred children that have ended and are never waited for."""
    for _ in range(100):
        fork(lambda: None)
    be_deaf()
    say_up()
    stay()


def shouter():
    """Talks all the time, to the last moment."""
    be_deaf()
    say_up()
    while True:
        os.write(1, b"and another thing\n" * 50)
        time.sleep(0.05)


globals()[sys.argv[2]]()
