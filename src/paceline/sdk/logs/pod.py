"""The log of one pod, with or without a job."""

from collections.abc import Iterator

from paceline.client.interface import PODS
from paceline.sdk.client import Session
from paceline.sdk.logs.event_mux import EventMux
from paceline.sdk.logs.lines import whole_lines
from paceline.sdk.logs.merge import within
from paceline.sdk.logs.sources import LogOptions, LogTry, Read, Said, reading


def pod_log(session: Session, name: str, ask: LogOptions) -> Iterator[bytes]:
    """Yield a pod's log in complete lines: until its process ends if followed, else the current ones."""
    if not ask.is_followed:
        path = PODS.path(session.namespace, name, "log")
        yield from within(whole_lines(session.cluster.stream(path, ask.query())), ask)
        return
    with EventMux(session.dial) as feed:
        feed.start(reading(LogTry(namespace=session.namespace, pod=name), ask), f"log of {name}")
        while not isinstance(item := feed.take(), Read):
            if isinstance(item, Said):
                yield item.text
