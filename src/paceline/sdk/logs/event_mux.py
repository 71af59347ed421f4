"""Several sources, each on a thread with its own connection, that feed one bounded queue."""

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, Self

from paceline.client.sync import DirectCluster
from paceline.sdk.connection import ClusterConnection

# Counted in chunks. The bound makes a slow reader slow down the sources instead of using more memory.
SIZE = 256
PUT_SECONDS = 0.1
END_SECONDS = 1.0

Put = Callable[[Any], None]


class Closed(Exception):
    """Stops a source whose feed was closed."""


class SourceContext:
    """The context of a source: its connection, the queue, and a pause that ends when the feed is closed."""

    def __init__(self, cluster: DirectCluster, put: Put, closed: threading.Event) -> None:
        self.cluster = cluster
        self.put = put
        self._closed = closed

    def pause(self, seconds: float) -> None:
        """Wait; raise Closed if the feed is closed meanwhile."""
        if self._closed.wait(seconds):
            raise Closed


Source = Callable[[SourceContext], None]


class EventMux:
    """Reads from many sources at once. Leaving the block closes all connections."""

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
        """Run a source on a thread; `take` raises its errors."""
        cluster = self._dial()
        self._clusters.append(cluster)
        line = SourceContext(cluster, self._put, self._closed)
        # Daemon threads: a source that does not notice the end must not block the exit of the process.
        self._spawn(threading.Thread(target=self._run, args=(source, line), name=name, daemon=True))

    def after(self, seconds: float, item: Any) -> None:
        """Put an item into the feed after a delay, so that a deadline is an ordinary event."""
        timer = threading.Timer(seconds, self._put_quietly, (item,))
        timer.daemon = True
        self._spawn(timer)

    def take(self, timeout: float | None = None) -> Any:
        """Return the next item, or None after `timeout`."""
        try:
            item = self._items.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """Close all connections and wait briefly for the sources to end."""
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
