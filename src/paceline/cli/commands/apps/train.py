"""`paceline train`: run your own code, from Git or from this machine."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import err, out, print_hint
from paceline.cli.sessions import open_session_or_start
from paceline.errors import AlreadyExists, BadRequest
from paceline.sdk.client import Session
from paceline.sdk.submission.framework_detection import framework_of
from paceline.sdk.submission.train import TrainingPlan, name_from, revise, submit, upload_source, wait_job

TAKEN = "application {name} already exists; add --update to run its next revision, or choose another name"
# Options that only make sense for code in a repository.
OF_REPOSITORIES = ("revision", "directory", "git_user", "git_password_file")
GIT_PASSWORD = "PACELINE_GIT_PASSWORD"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainTarget:
    """The name of the application, and the path of local code if it is not in a repository."""

    name: str
    path: str = ""


@click.command()
@click.argument("words", nargs=-1, metavar="[SCRIPT|FOLDER] [NAME]")
@click.option("--git", default="", metavar="URL", help="URL of the Git repository, http or https.")
@click.option("--repo", default="", metavar="REPO", help="Named code repository; see `paceline repo`.")
@click.option("--revision", default="", help="Branch, tag or commit.")
@click.option("--directory", default="", help="Folder of the repository in which the command runs.")
@click.option("--git-user", default="", help="User name for a private repository.")
@click.option("--git-password-file", default="", help="File with the Git password; prompted for if omitted.")
@click.option("--command", default="", metavar="TEXT", help="Shell command to run.")
@click.option("--framework", default="", help="tensorflow, keras, pytorch, python, or an image name.")
@click.option("--distributed", is_flag=True, help="Configure the replicas for distributed training.")
@click.option("--ps", default=0, type=click.IntRange(min=0), help="Number of parameter servers.")
@click.option("--workers", default=1, type=click.IntRange(min=1), help="Number of workers.")
@click.option("--gpus", default=0, type=click.IntRange(min=0), help="GPUs per worker; 0 trains on CPUs.")
@click.option("--cpu", default="", help="CPUs per replica.")
@click.option("--memory", default="", help="Memory per replica.")
@click.option(
    "--data",
    default="none",
    metavar="VOLUME|/DIR|none",
    help="Volume or folder mounted at /input; /output is saved to it.",
)
@click.option("--log-dir", default="", help="Folder of event files below /output; starts a TensorBoard.")
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="Hyperparameter, passed to the command as --NAME=VALUE.",
)
@click.option("--update", is_flag=True, help="Update the existing application and run its next revision.")
@click.option("-d", "--detach", is_flag=True, help="Return as soon as the application is created.")
@with_cluster_options
def train(*, cluster: ClusterOptions, **options: Any) -> int:
    r"""Train with your own code, local or from a Git repository.

    Every replica fetches the code, installs its requirements.txt and runs the command in its folder. Input data is
    mounted at /input; files written to /output are saved. Without --git and --repo, the script and the Python files
    next to it are uploaded, or the complete folder.

    \b
    Examples:
      paceline train train.py --workers 2
      paceline train --git https://example.org/team/code.git --command 'python3 train.py' --data none mnist
    """
    check_options(options)
    target = parse_arguments(options["words"], has_git=bool(options["git"] or options["repo"]))
    plan = plan_of(target, options)
    plan.check()
    with open_session_or_start(cluster) as session:
        if not options["update"] and session.app(target.name) is not None:
            raise AlreadyExists(TAKEN.format(name=target.name))
        # Resolve the code first: with_data may create a volume, which is not needed if the code does not exist.
        complete_plan = with_data(session, with_repo(session, plan), options["data"], is_local=cluster.is_embedded)
        app = create(session, upload_source(session, complete_plan), is_update=options["update"])
        out().line(f"app/{target.name} {app}")
        if options["detach"]:
            print_hint(f"to follow it: paceline logs -f {target.name}; for details: paceline app status {target.name}")
            return exit_codes.OK
        from paceline.cli.commands.jobs.run import RunOptions, follow

        return follow(session, wait_job(session, target.name), RunOptions())


def check_options(options: dict[str, Any]) -> None:
    """Raise BadRequest for options that would have no effect in combination with the others."""
    if options["git"] and options["repo"]:
        raise BadRequest(f"--repo {options['repo']} already says where the code is; omit one of --git and --repo")
    idle = next((name for name in OF_REPOSITORIES if options[name]), "")
    if idle and not (options["git"] or options["repo"]):
        option = f"--{idle.replace('_', '-')}"
        raise BadRequest(
            f"{option} {options[idle]} applies to a repository; specify one with --git URL or --repo REPO, "
            f"or omit {option} to train with local code"
        )
    if options["git_password_file"] and not options["git_user"]:
        raise BadRequest(
            f"--git-password-file {options['git_password_file']}: add --git-user NAME, the user of this password"
        )


def parse_arguments(arguments: tuple[str, ...], *, has_git: bool) -> TrainTarget:
    """Split the arguments into the script or folder and the name."""
    if has_git:
        if len(arguments) != 1:
            raise BadRequest("with --git or --repo, the only argument is the NAME of the application, such as mnist")
        return TrainTarget(name=lowered(arguments[0]))
    if not arguments or len(arguments) > 2:
        raise BadRequest("specify a script, a folder, --git or --repo, for example: paceline train train.py")
    name = arguments[1] if len(arguments) > 1 else name_from(arguments[0])
    return TrainTarget(name=lowered(name), path=arguments[0])


def lowered(name: str) -> str:
    """Return the name in lower case, as Kubernetes requires."""
    if name != name.lower():
        err().line(f"Names must be in lower case; using {name.lower()}.", "dim")
    return name.lower()


def plan_of(target: TrainTarget, options: dict[str, Any]) -> TrainingPlan:
    """Return the plan with the options as values of the template."""
    command, framework = options["command"], options["framework"]
    if target.path and not Path(target.path).exists():
        raise BadRequest(f"{target.path}: no such file or folder; to train with a repository, add --git URL")
    if target.path and not Path(target.path).is_dir():
        command = command or f"python3 {Path(target.path).name}"
    if target.path and not framework:
        framework, reason = framework_of(target.path, command)
        err().line(f"The framework is {framework}: {reason}; use --framework to override it.", "dim")
    values: dict[str, Any] = {
        "command": command,
        "framework": framework or "python",
        "distributed": options["distributed"] or options["workers"] > 1 or options["ps"] > 0,
        "ps": options["ps"],
        "workers": options["workers"],
        "gpus": options["gpus"],
        "logDir": options["log_dir"],
        "hyperparameters": dict(param(text) for text in options["params"]),
        **{name: options[name] for name in ("cpu", "memory") if options[name]},
    }
    if not target.path:
        values["git"] = {"url": options["git"], "revision": options["revision"], "directory": options["directory"]}
    source = {
        "path": target.path,
        "repo": options["repo"],
        "git_user": options["git_user"],
        "password": password(options),
    }
    return TrainingPlan(name=target.name, values=values, **source)


def password(options: dict[str, Any]) -> str:
    """Return the password of a private repository, read from a file, the environment or a prompt."""
    if not options["git_user"]:
        return ""
    from paceline.cli.commands.apps.named_resources import secret_from

    return secret_from(options["git_password_file"], GIT_PASSWORD, "Git password")


def param(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise BadRequest(f"--param {text!r}: write NAME=VALUE, such as lr=0.001")
    return name, value


def with_repo(session: Session, plan: TrainingPlan) -> TrainingPlan:
    """Return the plan with the named code repository filled in."""
    from paceline.sdk.code_repositories import CodeRepositories

    if not plan.repo:
        return plan
    return plan.with_repo(
        CodeRepositories(cluster=session.cluster, namespace=session.namespace).named(plan.repo).values
    )


def with_data(session: Session, plan: TrainingPlan, data: str, *, is_local: bool) -> TrainingPlan:
    """Return the plan with the named volume, or with a volume created for a folder."""
    from paceline.sdk.volumes import Volumes

    if data in ("", "none"):
        return plan
    volumes = Volumes(cluster=session.cluster, namespace=session.namespace)
    if "/" not in data:
        return replace(plan, data=volumes.named(data).values)
    if not data.startswith("/"):
        raise BadRequest(f"--data {data}: write an absolute path, such as {Path(data).absolute()}")
    if is_local and not Path(data).is_dir():
        raise BadRequest(f"--data {data}: there is no such folder on this machine")
    return replace(plan, data=volumes.for_folder(data).values)


def create(session: Session, plan: TrainingPlan, *, is_update: bool) -> str:
    """Create or update the application and return which of the two happened."""
    if is_update and session.app(plan.name) is not None:
        return f"updated to revision {revise(session, plan)}"
    try:
        submit(session, plan)
    except AlreadyExists as error:
        raise AlreadyExists(TAKEN.format(name=plan.name)) from error
    return "created"
