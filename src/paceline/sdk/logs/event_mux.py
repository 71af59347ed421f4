"""Several sources, each on a thread with a connection of its own, poured into one bounded queue."""

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, Self

from paceline.client.sync import DirectCluster
from paceline.sdk.connection import ClusterConnection

# Chunks, not lines: bounded so that a slow reader slows the sources down instead of filling the memory.
SIZE = 256
PUT_SECONDS = 0.1
END_SECONDS = 1.0

Put = Callable[[Any], None]


class Closed(Exception):
    """Ends a source whose feed nobody reads any more."""


class SourceContext:
    """What a source has: a connection, the way into the feed, and a pause that ends with the feed."""

    def __init__(self, cluster: DirectCluster, put: Put, closed: threading.Event) -> None:
        self.cluster = cluster
        self.put = put
        self._closed = closed

    def pause(self, seconds: float) -> None:
        """Wait; Closed when the feed ends meanwhile."""
        if self._closed.wait(seconds):
            raise Closed


Source = Callable[[SourceContext], None]


class EventMux:
    """Reads from many sources at once. Leaving it hangs up every connection it made."""

    def __init__(self, dial: ClusterConnection) -> None:
        self._dial = dial
        self._items: queue.Queue[Any] = queue.Queue(SIZE)
        self._closed = threading.Event()
        self._clusters: list[DirectCluster] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, source: Source, name: str) -> None:
        """Run a source on a thread; a known error in it is raised by `take`."""
        cluster = self._dial()
        self._clusters.append(cluster)
        line = SourceContext(cluster, self._put, self._closed)
        # Daemon threads: a source that does not notice the end must not keep the process from ending.
        self._spawn(threading.Thread(target=self._run, args=(source, line), name=name, daemon=True))

    def after(self, seconds: float, item: Any) -> None:
        """Put an item into the feed later: a deadline is an event like any other."""
        timer = threading.Timer(seconds, self._put_quietly, (item,))
        timer.daemon = True
        self._spawn(timer)

    def take(self, timeout: float | None = None) -> Any:
        """Give the next item, or None when none came in time."""
        try:
            item = self._items.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """Hang up, and wait a moment for the sources to notice."""
        self._closed.set()
        for cluster in self._clusters:
            cluster.hang_up()
        for thread in self._threads:
            if isinstance(thread, threading.Timer):
                thread.cancel()
        for thread in self._threads:
            thread.join(END_SECONDS)

    def _spawn(self, thread: threading.Thread) -> None:
        self._threads.append(thread)
        thread.start()

    def _run(self, source: Source, line: SourceContext) -> None:
        try:
            source(line)
        except Closed:
            return
        except BaseException as error:  # noqa: BLE001 - the reader of the feed raises it, bugs included
            self._put_quietly(error)
        finally:
            line.cluster.close()

    def _put_quietly(self, item: Any) -> None:
        with contextlib.suppress(Closed):
            self._put(item)

    def _put(self, item: Any) -> None:
        while not self._closed.is_set():
            try:
                self._items.put(item, timeout=PUT_SECONDS)
            except queue.Full:
                continue
            return
        raise Closed
