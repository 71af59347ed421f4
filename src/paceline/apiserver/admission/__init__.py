"""Admission: defaults, validation and allocation before an object is stored.

In     the object to store, and the old one on update.
Out    the admitted object with its warnings, or field errors.
Never  writes to the store.
"""
