"""An event loop in real time that can be told to jump ahead, so that a test against a real server need not wait."""

import asyncio


class JumpLoop(asyncio.SelectorEventLoop):
    """Runs timers when they are due, or when somebody has skipped the time until then."""

    def __init__(self) -> None:
        self._skipped = 0.0
        super().__init__()

    def time(self) -> float:
        """Tell the machine's monotonic seconds, and those that were skipped."""
        return super().time() + self._skipped

    def skip(self, seconds: float) -> None:
        """Jump ahead. Whoever waits for an answer at that moment loses as much of its patience."""
        self._skipped += seconds


def running_loop() -> JumpLoop:
    """Give the running loop, which is one of these."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpLoop)
    return loop
