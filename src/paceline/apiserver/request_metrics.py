"""Metrics of the requests that the API server answers, with Kubernetes' names."""

import asyncio
import itertools
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from paceline.apimachinery.metrics import Counter, Gauge, Histogram, MetricFamily
from paceline.apiserver.http_types import ResponseWriter, Scope

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
WATCH, OTHER = "WATCH", "other"
# The code of a request whose client left before the answer, as nginx and Kubernetes count it.
CLIENT_LEFT = 499


class RequestMetrics:
    """Counts requests by verb and code, how long they took, and which are under way."""

    def __init__(self) -> None:
        self._requests = Counter("apiserver_request_total", "Requests by verb and code.", ("verb", "code"))
        self._seconds = Histogram(
            "apiserver_request_duration_seconds", "How long requests took, without watches.", ("verb",)
        )
        self._open = Gauge("apiserver_current_inflight_requests", "Requests that are under way, by verb.", ("verb",))
        for verb in (*sorted(METHODS), WATCH):
            self._open.set(verb, value=0)

    @contextmanager
    def measure(self, scope: Scope, writer: ResponseWriter) -> Generator[None, None, None]:
        """Count one request while it is answered."""
        verb, loop = verb_of(scope), asyncio.get_running_loop()
        began = loop.time()
        self._open.add(verb)
        try:
            yield
        finally:
            self._open.add(verb, amount=-1)
            self._requests.add(verb, str(writer.code or CLIENT_LEFT))
            if verb != WATCH:
                self._seconds.observe(loop.time() - began, verb)

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metrics of all requests."""
        return itertools.chain(self._requests.collect(), self._seconds.collect(), self._open.collect())


def verb_of(scope: Scope) -> str:
    """Return the method of a request, WATCH for a watch; unknown methods count as one: clients can invent them."""
    method = str(scope["method"])
    query: bytes = scope.get("query_string") or b""
    if method == "GET" and (b"watch=true" in query or b"watch=1" in query):
        return WATCH
    return method if method in METHODS else OTHER
