"""What the create page asks for: checks of a manifest while it is typed, examples, templates and schemas.

In     the text of a manifest, or the values of a template.
Out    faults with their lines, and documents to start from.
Never  writes to the cluster.
"""
