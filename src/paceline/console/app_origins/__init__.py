"""TensorBoard and JupyterLab inside the console, each on an origin of its own.

In     requests to LABEL.paceline.localhost, and the console's requests to open an app.
Out    the answers of the app's pod, through the service proxy of the cluster, as the person.
Never  passes a credential on, and never lets an app's page reach the console or another app.
"""
