"""Objects as the people of the crash tests write them."""

from typing import Any

from paceline.apimachinery.meta import Object


def named(kind: str, name: str, **parts: Any) -> Object:
    return {"kind": kind, "metadata": {"name": name, "namespace": "default"}, "apiVersion": "v1", **parts}


def template(container: str, *, image: str = "python:3", **spec: Any) -> Object:
    main = {"name": container, "image": image, "command": ["true"], **spec.pop("main", {})}
    return {"spec": {"terminationGracePeriodSeconds": 2, "containers": [main], **spec}}
