"""The controller of training applications.

In     TrainingApps and the jobs they own.
Out    the next revision as a job, and the status of the application.
Never  runs a pod.
"""
