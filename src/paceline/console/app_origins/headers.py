"""Which headers travel between a browser and the pod of an app, and which requests of a browser are refused."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paceline.console.app_origins.origin import EmbeddedApp

Headers = tuple[tuple[str, str], ...]

# Prefixes of the names of our own cookies; the first one cannot be set for a parent domain.
OUR_COOKIES = ("__host-paceline", "__secure-paceline", "paceline")
# Of a request: credentials, the address of the page, and what the service proxy sets itself.
_NOT_PASSED = frozenset({"authorization", "cookie", "expect", "forwarded", "host", "origin", "referer", "x-paceline"})
_NOT_PASSED_STARTS = ("impersonate-", "sec-fetch-", "sec-websocket-", "x-forwarded-", "x-remote-")
# Of an answer: what would affect other hosts of our domain, open the origin to others, or ask for a password.
_NOT_RETURNED = frozenset(
    {
        *("alt-svc", "clear-site-data", "content-security-policy", "cross-origin-opener-policy"),
        *("cross-origin-resource-policy", "location", "nel", "origin-agent-cluster", "proxy-authenticate"),
        *("referrer-policy", "refresh", "report-to", "reporting-endpoints", "service-worker-allowed"),
        *("set-cookie", "strict-transport-security", "www-authenticate", "x-frame-options"),
    }
)
_NOT_RETURNED_STARTS = ("access-control-",)
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Sec-Fetch-Site of requests by the page itself, or by an address that a person typed.
_OWN_SITES = frozenset({"same-origin", "none"})
_FRAME_ANCESTORS = re.compile(r"\s*frame-ancestors(\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRequest:
    """What a browser tells about one of its requests. Names of headers are in lower case."""

    method: str
    headers: Mapping[str, str]
    is_websocket: bool = False

    def refusal(self, origin: str) -> str:
        """Return why a page of another origin may not send this request; empty if it may, or if it is our own page.

        All apps and the console are one site, so their cookies come with requests of each other's pages.
        """
        if self.headers.get("service-worker"):
            # It would go on to answer in our place, also for the page that receives tickets.
            return "service workers are not allowed"
        sender = self.headers.get("origin", "")
        if sender and sender.lower() != origin.lower():
            return "requests of other pages are not allowed"
        if self.is_websocket or self.method not in _SAFE:
            is_own = bool(sender) or self.headers.get("sec-fetch-site") == "same-origin"
            return "" if is_own else "the request must name its own page as Origin"
        if self.headers.get("sec-fetch-site", "none") in _OWN_SITES:
            return ""
        # A link or the frame of the console; what may show the page in a frame is left to frame-ancestors.
        return "" if self.headers.get("sec-fetch-mode") == "navigate" else "requests of other pages are not allowed"


def passed_on(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return the headers of a browser that the app's pod gets."""
    pairs = tuple((name.lower(), value) for name, value in headers)
    passed = [
        (name, value) for name, value in pairs if name not in _NOT_PASSED and not name.startswith(_NOT_PASSED_STARTS)
    ]
    cookies = [
        cookie
        for name, value in pairs
        if name == "cookie"
        for cookie in value.split(";")
        if cookie.strip() and not is_our_cookie(cookie)
    ]
    if cookies:
        passed.append(("cookie", "; ".join(cookie.strip() for cookie in cookies)))
    return tuple(passed)


def returned(headers: Iterable[tuple[str, str]], app: EmbeddedApp, ancestors: str, token: str = "") -> Headers:
    """Return the headers of an answer for the browser; `ancestors` is the origin that may show the app in a frame."""
    forwarded, policies = [], []
    for original, value in headers:
        name = original.lower()
        if name == "content-security-policy":
            policies.append(value)
        elif name == "location":
            forwarded.append((name, app.location(value, token)))
        elif name == "set-cookie" and not is_our_cookie(value) and not value.lstrip().startswith("="):
            # Browsers send a cookie without a name as its value alone, which may look like one of ours.
            forwarded.append((name, without_domain(value)))
        elif name not in _NOT_RETURNED and not name.startswith(_NOT_RETURNED_STARTS):
            forwarded.append((name, value))
    return (*forwarded, *(("content-security-policy", policy) for policy in framed_by(policies, ancestors)), *ISOLATION)


# Other origins load nothing from here and hold no handle to a window of it.
ISOLATION: Headers = (
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("origin-agent-cluster", "?1"),
    ("referrer-policy", "same-origin"),
)


def framed_by(policies: Iterable[str], ancestors: str) -> list[str]:
    """Return the policies with one frame-ancestors directive, which replaces theirs; each policy is enforced alone."""
    rewritten = []
    for policy in ",".join(policies).split(","):
        directives = [part.strip() for part in policy.split(";") if part.strip() and not _FRAME_ANCESTORS.match(part)]
        if directives:
            rewritten.append("; ".join(directives))
    return [*rewritten, f"frame-ancestors {ancestors}"]


def without_domain(cookie: str) -> str:
    """Return a Set-Cookie without its Domain, so that it stays on the host of its app."""
    parts = cookie.split(";")
    return ";".join([parts[0], *(part for part in parts[1:] if part.partition("=")[0].strip().lower() != "domain")])


def is_our_cookie(cookie: str) -> bool:
    """Return whether a cookie has one of the console's own names."""
    return cookie.partition("=")[0].strip().lower().startswith(OUR_COOKIES)
