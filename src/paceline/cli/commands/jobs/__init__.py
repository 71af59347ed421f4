"""Commands on jobs and any other objects.

In     options and arguments parsed by click.
Out    calls to the SDK; results are printed through `cli/output`.
Never  imports a command that is not used.
"""
