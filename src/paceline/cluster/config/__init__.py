"""The user's settings.yaml, one module per section.

In     the text of settings.yaml and command-line flags.
Out    typed settings, or errors with path, value and what would be right.
Never  starts anything.
"""
