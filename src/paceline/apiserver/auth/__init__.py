"""Authentication and authorization of every request.

In     the head of a request: headers, token, path, verb.
Out    the caller, or a refusal with its status code.
Never  reads the body of a request.
"""
