"""Python environments in place of images: specs, uv builds, a cache.

In     an image name, the user's table of images, requirement sets.
Out    a folder with an environment, built once and cached by hash.
Never  builds in place: a half-built environment is never seen.
"""
