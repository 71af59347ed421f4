"""The small pages that the console serves on the origin of an app: open, ping, starting, refused.

Their texts are in both languages, because the origin of an app does not know the person's preferences.
"""

from dataclasses import dataclass
from html import escape

# Answers to the console, which waits for them in the frame's parent.
MESSAGE_TYPE = "paceline.embedded-app"
RELOAD_SECONDS = 2

_STYLE = """body{font:14px/1.6 Inter,system-ui,"PingFang SC","Microsoft YaHei",sans-serif;margin:20vh auto 0;
max-width:32rem;padding:0 1.5rem;text-align:center;color:#111827;background:#f6f7f9}
@media(prefers-color-scheme:dark){body{color:#e7ebf3;background:#0f1521}}"""

_TELL = "const tell=(state)=>{if(parent!==window)parent.postMessage({type:TYPE,state},CONSOLE)};"
# Takes the ticket out of the address before anything else, exchanges it for a cookie and goes on to the app.
_OPEN = f"""{_TELL}
const ticket=location.hash.slice(1);
history.replaceState(null,"",location.pathname);
const refuse=()=>{{document.getElementById("refused").hidden=false;tell("refused")}};
if(ticket){{fetch(location.pathname,{{method:"POST",headers:{{"X-Paceline":"1"}},body:ticket}})
.then((answer)=>answer.ok?answer.json():Promise.reject(new Error("refused")))
.then((app)=>{{tell("open");location.replace(app.front)}}).catch(refuse)}}else{{refuse()}}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPage:
    """An HTML page with the policy that it needs."""

    body: bytes
    policy: str

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers of its answer."""
        return (
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("content-security-policy", self.policy),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
        )


def open_page(console: str, nonce: str) -> OpenPage:
    """Return the page that turns a ticket into the cookie of the app."""
    text = (
        "This page could not be opened; go back to the console and open it again.",
        "无法打开此页面。请回到控制台重新打开。",
    )
    return _page(_paragraphs(text, is_hidden=True), console=console, nonce=nonce, script=_OPEN)


def ping_page(console: str, nonce: str) -> OpenPage:
    """Return the page that tells the console that the browser reaches the origins of apps."""
    return _page("", console=console, nonce=nonce, script=f'{_TELL}tell("reachable")')


def starting_page(console: str, nonce: str) -> OpenPage:
    """Return the page for an app that does not answer yet; it reloads."""
    text = ("Starting; this page reloads automatically.", "正在启动。页面会自动刷新。")
    refresh = f'<meta http-equiv="refresh" content="{RELOAD_SECONDS}">'
    return _page(refresh + _paragraphs(text), console=console, nonce=nonce)


def no_access_page(console: str, nonce: str) -> OpenPage:
    """Return the page for a browser without a valid cookie of this app."""
    text = ("Open this page from the console; access to it has ended.", "请从控制台打开此页面。本次访问已失效。")
    return _page(_paragraphs(text), console=console, nonce=nonce, script=f'{_TELL}tell("refused")')


def _paragraphs(texts: tuple[str, ...], *, is_hidden: bool = False) -> str:
    inner = "".join(f"<p>{escape(text)}</p>" for text in texts)
    return f'<div id="refused"{" hidden" if is_hidden else ""}>{inner}</div>'


def _page(body: str, *, console: str, nonce: str, script: str = "") -> OpenPage:
    constants = f'const TYPE="{MESSAGE_TYPE}",CONSOLE="{console}";' if script else ""
    tag = f'<script nonce="{nonce}">{constants}{script}</script>' if script else ""
    head = f'<!doctype html><meta charset="utf-8"><title>Paceline</title><style nonce="{nonce}">{_STYLE}</style>'
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        f"base-uri 'none'; form-action 'none'; frame-ancestors {console}"
    )
    return OpenPage(body=f"{head}{body}{tag}".encode(), policy=policy)
