"""Suites that every implementation of a contract must pass.

In     a subject, made by a fixture of the tests that use the suite.
Out    the promises of a contract, each as a test.
Never  knows which implementation it is looking at.
"""
