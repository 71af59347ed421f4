"""The commands, one module each, loaded on demand.

In     options and arguments parsed by click.
Out    calls to the SDK; results are printed through `cli/output`.
Never  imports a command that is not used, so that every command starts fast.
"""
