"""The back end of the web console: it serves the page, and does in the cluster what a logged-in person asks for.

In     requests and WebSockets of a browser, with a session cookie.
Out    the page, and requests to the Kubernetes API with the person's own credential.
Never  opens the store, the agent's socket or a folder of the cluster, or uses a right that the person does not have.
"""
