"""All commands with their modules and summaries, so that the help needs no imports."""

from collections.abc import Mapping
from dataclasses import dataclass

# A command: MODULE:FUNCTION below cli/commands/, and its summary.
Entry = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEntry:
    """A group of commands."""

    summary: str
    help: str
    commands: Mapping[str, "Entry | GroupEntry"]


Command = Entry | GroupEntry

TEMPLATE = GroupEntry(
    summary="List, explain and render application templates.",
    help="""\
Examples:
  paceline app template list
  paceline app template show tensorflow-training
  paceline app template render mnist tensorflow-training -f values.yaml""",
    commands={
        "list": ("apps.templates:list_templates", "List the templates."),
        "show": ("apps.templates:show_template", "Show a template: what it does, and its values with their defaults."),
        "render": (
            "apps.templates:render_template",
            "Print the application that a template renders with the given values.",
        ),
    },
)

APP = GroupEntry(
    summary="Manage applications: trainings with values and revisions.",
    help="""\
Examples:
  paceline app template show tensorflow-training
  paceline app install mnist tensorflow-training -f values.yaml
  paceline app upgrade mnist --set hyperparams.learningrate=0.0005
  paceline app history mnist""",
    commands={
        "install": ("apps.releases:install", "Install an application from a template and values."),
        "upgrade": ("apps.releases:upgrade", "Change the values of an application and run its next revision."),
        "rollback": ("apps.releases:rollback", "Run an earlier revision of an application again."),
        "list": ("apps.apps:list_apps", "List applications."),
        "status": ("apps.apps:status", "Show an application and its resources."),
        "history": ("apps.apps:history", "List the revisions of an application with their results."),
        "diff": ("apps.apps:diff", "Compare two revisions of an application."),
        "uninstall": ("apps.apps:uninstall", "Uninstall applications and delete their resources."),
        "template": TEMPLATE,
    },
)

VOLUME = GroupEntry(
    summary="Manage named volumes: folders, claims and buckets.",
    help="""\
Examples:
  paceline volume create photos --dir /srv/photos
  paceline volume create results --size 10Gi
  paceline volume create tfoss --bucket oss://team/data --endpoint https://oss.example.org --access-key-id ID
  paceline train train.py --data tfoss
  paceline volume put ./data photos
  paceline volume get results:model.pt""",
    commands={
        "create": (
            "apps.named_resources:create_volume",
            "Create a named volume from a folder, a new claim or a bucket.",
        ),
        "list": ("apps.named_resources:list_volumes", "List the named volumes."),
        "delete": ("apps.named_resources:delete_volume", "Delete a named volume."),
        "ls": ("apps.volume_files:list_files", "List the files of a volume."),
        "get": ("apps.volume_files:get_files", "Download a file or folder of a volume."),
        "put": ("apps.volume_files:put_files", "Upload a file or folder to a volume."),
        "rm": ("apps.volume_files:remove_files", "Remove a file or folder of a volume."),
        "du": ("apps.volume_files:disk_usage", "Show what takes the space of a volume."),
    },
)

REPO = GroupEntry(
    summary="Manage named code repositories.",
    help="""\
Examples:
  paceline repo create mnist --git https://example.org/team/mnist.git --revision v1.2
  paceline repo create private --git https://example.org/team/private.git --secret team-git
  paceline train --repo mnist --command 'python3 train.py' NAME""",
    commands={
        "create": ("apps.named_resources:create_repo", "Create a named code repository."),
        "list": ("apps.named_resources:list_repos", "List the named code repositories."),
        "delete": ("apps.named_resources:delete_repo", "Delete a named code repository."),
    },
)

ENV = GroupEntry(
    summary="Manage the Python environments that images are mapped to.",
    help="""\
The embedded cluster has no container runtime: a table of patterns maps each image name to a Python environment. uv
builds an environment when the first pod needs it, or in advance with `paceline env build`.

Examples:
  paceline env list
  paceline env build pytorch
  paceline up -d --image 'pytorch/pytorch:2.5*=pytorch==2.5.1'""",
    commands={
        "list": ("cluster.environments:list_environments", "List the image table and the environments that are built."),
        "build": ("cluster.environments:build", "Build environments in advance and print their folders."),
        "prune": ("cluster.environments:prune", "Remove environments that have not been used for a while."),
    },
)

CLUSTER = GroupEntry(
    summary="Inspect, back up and restore the embedded cluster.",
    help="""\
Examples:
  paceline cluster status
  paceline cluster backup monday.paceline
  paceline cluster verify""",
    commands={
        "status": ("cluster.admin:status", "Show whether the embedded cluster is running, and its nodes."),
        "backup": ("cluster.admin:backup", "Back up the objects of the embedded cluster to a file."),
        "restore": ("cluster.admin:restore", "Restore the objects of the embedded cluster from a backup."),
        "verify": ("cluster.admin:verify", "Verify the integrity of the object store or of a backup."),
    },
)

KUBE = GroupEntry(
    summary="Run Paceline on a Kubernetes cluster.",
    help="""\
Examples:
  paceline kube install --set image=registry.example/paceline:0.1.0
  paceline kube controller --kubeconfig ~/.kube/config""",
    commands={
        "controller": ("cluster.kube:controller", "Run the job controller against a Kubernetes cluster."),
        "console": ("cluster.kube:console", "Serve the web console to the users of a Kubernetes cluster."),
        "crds": ("cluster.kube:crds", "Print the CustomResourceDefinitions."),
        "install": ("cluster.kube:install", "Install Paceline in a Kubernetes cluster, or update it."),
        "manifests": ("cluster.kube:manifests", "Print what `paceline kube install` applies."),
    },
)

# The sections of `paceline --help`.
SECTIONS: Mapping[str, Mapping[str, Command]] = {
    "Run jobs": {
        "run": ("jobs.run:run", "Run the jobs in YAML files and follow them until they end."),
        "submit": ("jobs.run:submit", "Create the objects in YAML files and return at once."),
        "train": ("apps.train:train", "Train with your own code, local or from a Git repository."),
        "check": ("jobs.run:check", "Validate YAML files without creating anything."),
    },
    "Inspect jobs": {
        "get": ("jobs.get:get", "List jobs, or resources of any kind."),
        "describe": ("jobs.objects:describe", "Show a job's replicas, conditions, events and failure."),
        "logs": ("jobs.logs:logs", "Print or follow the logs of a job or pod."),
        "top": ("jobs.top:top", "Show the resource usage of jobs, pods, nodes or claims."),
        "history": (
            "jobs.history:history",
            "List the jobs of the past, or show one, also after it was deleted.",
        ),
        "results": ("jobs.results:results", "List the output files of a job."),
        "metrics": ("jobs.metrics:metrics", "Show the training metrics of a job, and charts of them."),
        "tensorboard": ("jobs.interactive:tensorboard", "Open the TensorBoard of a job in your browser."),
        "notebook": ("jobs.interactive:notebook", "Open a notebook in your browser."),
    },
    "Control jobs": {
        "stop": ("jobs.lifecycle:stop", "Stop a job or application and wait until it has stopped."),
        "restart": ("jobs.lifecycle:restart", "Restart the processes of a running or stopped job."),
        "rerun": ("jobs.lifecycle:rerun", "Run a job again, as a new job with the same spec."),
        "pause": ("jobs.lifecycle:pause", "Pause a job: stop its processes but keep the job."),
        "resume": ("jobs.lifecycle:resume", "Resume a paused job."),
        "scale": ("jobs.lifecycle:scale", "Change the number of replicas of an elastic job."),
        "exec": ("jobs.exec:execute", "Run a command in a container of a job or pod."),
        "delete": ("jobs.objects:delete", "Delete jobs or other resources."),
    },
    "Open in a browser": {
        "ui": ("cluster.ui:ui", "Open the web console."),
    },
    "Start and stop the embedded cluster": {
        "up": ("cluster.up:up", "Start the embedded cluster."),
        "down": ("cluster.down:down", "Stop the embedded cluster."),
    },
    "Manage": {"app": APP, "volume": VOLUME, "repo": REPO, "env": ENV, "cluster": CLUSTER, "kube": KUBE},
    "Other": {
        "completion": ("about:completion", "Print the completion script for your shell."),
        "version": ("about:version", "Print the version of this command and of the cluster."),
    },
}


def summary_of(command: Command) -> str:
    """Return the summary of a command or group."""
    return command.summary if isinstance(command, GroupEntry) else command[1]
