"""Which environment an image name selects.

In     image names and the table of images.
Out    an environment, or the reason why the pod waits.
Never  builds one itself.
"""
