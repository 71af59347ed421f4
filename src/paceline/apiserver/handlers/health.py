"""Health: whether this server can do its work, in the words of Kubernetes.

A store that nothing can be written to any more makes the server unfit for good, until it is started again. So all
three say so: readyz, whose 503 keeps requests away, and livez and healthz, whose 503 lets a keeper restart it.
"""

from paceline.apiserver.http_types import HttpRequest, HttpResponse
from paceline.errors import HostError

PLAIN = "text/plain; charset=utf-8"


def health(request: HttpRequest, failure: HostError | None, *, has_token: bool) -> HttpResponse:
    """Answer a health path; only callers with a token get the reason of a failure.

    A store that accepts no more writes stays broken until the next start. So all three paths report it: readyz keeps
    requests away, livez and healthz let a supervisor restart the server.
    """
    name, _, part = request.path.strip("/").partition("/")
    if part == "ping" or (failure is None and "verbose" not in request.query):
        return HttpResponse(body=b"ok", content_type=PLAIN)
    if failure is None:
        return HttpResponse(body=f"[+]ping ok\n[+]store ok\n{name} check passed\n".encode(), content_type=PLAIN)
    reason = str(failure) if has_token else "reason withheld"
    text = f"[+]ping ok\n[-]store failed: {reason}\n{name} check failed\n"
    return HttpResponse(code=503, body=text.encode(), content_type=PLAIN)
