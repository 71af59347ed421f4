"""Metrics of work queues and of requests to an API server, with the names that Kubernetes' own clients use."""

import itertools
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing

from paceline.apimachinery.metrics import Counter, Gauge, Histogram, MetricFamily, ReadGauge
from paceline.client.http.transport import Transport, Unreachable
from paceline.client.requests import Request, Response
from paceline.errors import PacelineError

# The code of a request that got no answer.
NO_ANSWER = "<error>"
SUCCESS, CONFLICT, ERROR = "success", "conflict", "error"


class QueueMetrics:
    """What one work queue has done: keys added, how long they waited and took, and how their reconciles ended."""

    def __init__(self, name: str, depth: Callable[[], int]) -> None:
        self._name = name
        by_name = (("name", name),)
        self._depth = ReadGauge(
            name="workqueue_depth", help="Keys that wait to be reconciled now.", read=depth, labels=by_name
        )
        self._adds = Counter("workqueue_adds_total", "Keys that were added.", ("name",))
        self._retries = Counter("workqueue_retries_total", "Keys that were added again after an error.", ("name",))
        self._waits = Histogram("workqueue_queue_duration_seconds", "How long keys waited in the queue.", ("name",))
        self._works = Histogram("workqueue_work_duration_seconds", "How long reconciles took.", ("name",))
        self._results = Counter("paceline_reconcile_total", "Reconciles by their result.", ("name", "result"))
        for counter in (self._adds, self._retries):
            counter.add(name, amount=0)
        for result in (SUCCESS, CONFLICT, ERROR):
            self._results.add(name, result, amount=0)

    def added(self) -> None:
        """Count a key that was added."""
        self._adds.add(self._name)

    def waited(self, seconds: float) -> None:
        """Record how long a key waited before its reconcile started."""
        self._waits.observe(seconds, self._name)

    def ended(self, result: str, seconds: float) -> None:
        """Record a reconcile."""
        self._results.add(self._name, result)
        self._works.observe(seconds, self._name)
        if result != SUCCESS:
            self._retries.add(self._name)

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metrics of this queue."""
        parts = (self._depth, self._adds, self._retries, self._waits, self._works, self._results)
        return itertools.chain.from_iterable(part.collect() for part in parts)


class MeteredTransport:
    """A transport that counts requests by method and code, and the watches that are open."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._requests = Counter(
            "rest_client_requests_total", "Requests to the API server by method and code.", ("method", "code")
        )
        self._watches = Gauge("paceline_client_open_watches", "Watches and other streams that are open now.")

    async def send(self, request: Request) -> Response:
        """Carry a request and count it."""
        try:
            response = await self._transport.send(request)
        except PacelineError:
            self._requests.add(request.method, NO_ANSWER)
            raise
        self._requests.add(request.method, str(response.status))
        return response

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Carry a stream and count it while it is open."""
        self._watches.add()
        try:
            async with aclosing(self._transport.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except PacelineError as error:
            self._requests.add(request.method, NO_ANSWER if isinstance(error, Unreachable) else str(error.code))
            raise
        else:
            self._requests.add(request.method, "200")
        finally:
            self._watches.add(amount=-1)

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metrics of all requests."""
        return itertools.chain(self._requests.collect(), self._watches.collect())
