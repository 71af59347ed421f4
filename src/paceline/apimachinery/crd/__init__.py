"""CustomResourceDefinitions: their validation, structural schemas and status.

In     CustomResourceDefinition objects.
Out    field errors, pruned and defaulted schemas, conditions.
Never  serves a request.
"""
