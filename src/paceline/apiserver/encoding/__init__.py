"""Request bodies and response formats: JSON, YAML, protobuf, Table, OpenAPI.

In     bytes from the wire, objects from the store.
Out    decoded objects, encoded responses.
Never  decides whether a request is allowed.
"""
