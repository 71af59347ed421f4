"""Injects source code, data and hyperparameters into the pods of a gang: volumes, init containers, sidecars, arguments.

In     an expanded gang, and the source, input, output and hyperparameters of its spec.
Out    the same gang, with pods that fetch the code, download the data and upload the results.
Never  knows a framework, or the implementation of the program in our own image.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from paceline.apimachinery.pods import CONFINED
from paceline.apimachinery.quantity import parse
from paceline.kinds.spec.data import INPUT, OUTPUT, Bucket, DataFlowSpec, Input, Output, Staging
from paceline.kinds.spec.fields import Free
from paceline.kinds.spec.hyperparameters import Hyperparameters, flags_of, variables_of, with_flags
from paceline.kinds.spec.pod_template import each_container, literal, with_env
from paceline.kinds.spec.run_policy import RunMode, is_debug
from paceline.kinds.spec.source import FOLDER, USUAL_REQUIREMENTS, Archive, Git, Source, pinned, working_dir
from paceline.model.gang import KEEPER, Gang, JobNaming, Member, OutputUpload, ReplicaId

# Our program, in our own image, that does the work in the pods.
PROGRAM = ("python", "-m", "paceline.podtools")
# Directory that the containers of a pod share: uv, the installer, and the packages that it installs.
TOOLS, CACHE, SECRETS = "/paceline", "/paceline-cache", "/paceline-secrets"
PACKAGES = f"{TOOLS}/site"
SOURCE_VOLUME, TOOLS_VOLUME, CACHE_VOLUME = "paceline-source", "paceline-tools", "paceline-cache"
INPUT_VOLUME, OUTPUT_VOLUME = "paceline-input", "paceline-output"
CLONE, INSTALL, BRING, RESTORE = (f"paceline-{step}" for step in ("clone", "install", "input", "restore"))
# Names of the container that runs the command, for pods with several containers.
TRAINING = ("pytorch", "python", "tensorflow", "xgboost")
# Grace period of the command by default, and the extra time in which the sidecar uploads the last files.
USUAL_GRACE, LAST_COPY_SECONDS = 30, 60
# Fields of the pod spec that our own pods take from the pods of the job.
SHARED = ("hostNetwork", "imagePullSecrets", "nodeSelector", "securityContext", "serviceAccountName", "tolerations")
REQUESTS = {"cpu": "50m", "memory": "64Mi"}
LIMITS = {"cpu": "2", "memory": "2Gi"}
SAME_USER = ("runAsUser", "runAsGroup", "runAsNonRoot")
NOTHING_KEPT = "files in /output were not kept, because spec.output is not set"
# A sidecar that gets SIGTERM before it handles signals would stop without uploading, so the command waits for it.
WAIT_READY = "i=0; until [ -e /tmp/podtools-ready ] || [ $i -ge 600 ]; do i=$((i+1)); sleep 0.05; done"
# $1: `must` if a requirements file has to exist; the other arguments are the files to try.
FIND_REQUIREMENTS = f"""must=$1; shift
for file in "$@"; do
  if [ -f "$file" ]; then
    if [ -d {CACHE} ] && python3 {TOOLS}/requirements_cache.py "$file"; then exit 0; fi
    exec python3 {TOOLS}/pip_install.py "$file"
  fi
done
if [ "$must" = must ]; then echo "the code has no file $1" >&2; exit 1; fi
echo "there is no requirements.txt, so nothing is installed" >/dev/termination-log"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PodAdditions:
    """Additions to a pod for one field of the spec."""

    volumes: tuple[Free, ...] = ()
    # Volume mounts for every container of the template.
    mounts: tuple[Free, ...] = ()
    # Init containers of ours, which run before those of the template.
    init_containers: tuple[Free, ...] = ()
    keeping: OutputUpload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _PodContext:
    """The pod that additions are made for: its job, its replica and its template."""

    site: JobNaming
    place: ReplicaId
    template: Mapping[str, Any]

    @property
    def main(self) -> int:
        """Index of the container that runs the command."""
        names = [container["name"] for container in self.template["spec"]["containers"]]
        return next((names.index(name) for name in (*TRAINING, self.place.role) if name in names), 0)

    def container(self, name: str, arguments: tuple[str, ...], *mounts: Free, **fields: Any) -> Free:
        """Return a container of our own image; it has the same user as the command, to be able to read its files."""
        context = self.template["spec"]["containers"][self.main].get("securityContext") or {}
        # Whether it must not be root is up to the author, whose files it reads and writes.
        user = {key: context[key] for key in SAME_USER if key in context}
        return {
            "name": name,
            **self.site.tools.image_fields,
            "command": [*PROGRAM, *(literal(argument) for argument in arguments)],
            "volumeMounts": [dict(mount) for mount in mounts],
            "securityContext": {**CONFINED, **user},
            "resources": self.resources(),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            **fields,
        }

    def resources(self, *, is_beside: bool = False) -> Free:
        """Return small requests, and limits: those of the command, or usual ones for a container that runs beside it.

        A namespace with a quota accepts only containers that have both.
        """
        main = self.template["spec"]["containers"][self.main].get("resources") or {}
        main_limits = {} if is_beside else main.get("limits") or {}
        limits = {name: main_limits.get(name, usual) for name, usual in LIMITS.items()}
        requests = {name: _least(usual, limits[name]) for name, usual in REQUESTS.items()}
        return {"requests": requests, "limits": limits}

    def pod(self, container: Free, volumes: tuple[Free, ...]) -> Free:
        """Return a pod with one container of ours."""
        spec = self.template["spec"]
        shared = {key: spec[key] for key in SHARED if key in spec} | self.site.tools.pull_secret_fields(spec)
        return {"spec": {**shared, "containers": [container], "volumes": [dict(volume) for volume in volumes]}}


def inject(gang: Gang, spec: DataFlowSpec, site: JobNaming) -> Gang:
    """Return the gang with source, input, output and hyperparameters added to its pods."""

    def context_of(member: Member) -> _PodContext:
        return _PodContext(site=site, place=member.place, template=member.template)

    members = tuple(_fed(member, spec, context_of(member)) for member in gang.members)
    if spec.hyperparameters is not None and not _runs_debug_command(spec, spec.hyperparameters):
        # Flags belong to the one command that launches the other processes; variables belong to every pod.
        is_one = gang.launch is not None and spec.hyperparameters.passed_as == "Flags"
        places = (gang.leader,) if is_one else tuple(member.place for member in members)
        members = tuple(
            _with_hyperparameters(member, spec.hyperparameters, context_of(member))
            if member.place in places
            else member
            for member in members
        )
    remark = NOTHING_KEPT if spec.source is not None and spec.output is None else ""
    gang = replace(gang, members=members, success_note=remark, scaled_down=tuple(_scaled_down(gang, spec, context_of)))
    if spec.source is None or spec.source.git is None:
        return gang
    if commit := pinned(spec.source.git) or site.progress.commit:
        return replace(gang, commit=commit)
    return replace(gang, resolve=_resolve(context_of(gang.member(gang.leader)), spec.source.git))


def _scaled_down(gang: Gang, spec: DataFlowSpec, context_of: Callable[[Member], _PodContext]) -> Iterator[Member]:
    """Yield the members that were scaled down and whose output is uploaded; they have the template of their role."""
    places = {member.place for member in gang.members}
    for place in context_of(gang.members[0]).site.progress.scaled_down:
        like = next((member for member in gang.members if member.place.role == place.role), gang.members[0])
        keeping = spec.output and _output(context_of(replace(like, place=place)), spec.output).keeping
        if keeping and place not in places:
            yield replace(like, place=place, keeping=keeping)


def _fed(member: Member, spec: DataFlowSpec, context: _PodContext) -> Member:
    additions = []
    if spec.source is not None:
        additions.append(_source(context, spec.source))
    if spec.input is not None:
        additions.append(_input(context, spec.input))
    if spec.output is not None:
        additions.append(_output(context, spec.output))
    elif spec.source is not None and not _has_mount(member.template, OUTPUT):
        # The code may write to /output even though the spec does not keep it.
        additions.append(_PodAdditions(volumes=(_empty(OUTPUT_VOLUME),), mounts=(_at(OUTPUT_VOLUME, OUTPUT),)))
    if not additions:
        return member
    template = _loaded(member.template, additions)
    if any(addition.init_containers for addition in additions):
        pull_secrets = context.site.tools.pull_secret_fields(template["spec"])
        template = {**template, "spec": {**template["spec"], **pull_secrets}}
    if spec.source is not None:
        template = _at_home(template, spec.source)
    keeping = next((addition.keeping for addition in additions if addition.keeping is not None), None)
    if keeping is not None:
        seconds = template["spec"].get("terminationGracePeriodSeconds")
        grace = (USUAL_GRACE if seconds is None else int(seconds)) + LAST_COPY_SECONDS
        template = {**template, "spec": {**template["spec"], "terminationGracePeriodSeconds": grace}}
    return replace(member, template=template, keeping=keeping)


def _loaded(template: Mapping[str, Any], additions: list[_PodAdditions]) -> Free:
    mounts = [dict(mount) for addition in additions for mount in addition.mounts]

    def mounted(container: Mapping[str, Any]) -> Free:
        return {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), *mounts]}

    changed = each_container(template, mounted)
    spec = changed["spec"]
    init_containers = [container for addition in additions for container in addition.init_containers]
    return {
        **changed,
        "spec": {
            **spec,
            "initContainers": [*init_containers, *(spec.get("initContainers") or ())],
            "volumes": [
                *(spec.get("volumes") or ()),
                *(dict(volume) for addition in additions for volume in addition.volumes),
            ],
        },
    }


def _at_home(template: Free, source: Source) -> Free:
    """Return a template whose containers run in the directory of the code, with its packages in PYTHONPATH."""
    home = working_dir(source)
    has_packages = source.requirements != ""

    def moved(container: Mapping[str, Any]) -> Free:
        env = [dict(variable) for variable in container.get("env") or ()]
        if has_packages:
            python_path = next((variable for variable in env if variable["name"] == "PYTHONPATH"), None)
            if python_path is None:
                env.insert(0, {"name": "PYTHONPATH", "value": PACKAGES})
            elif "value" in python_path:
                python_path["value"] = f"{PACKAGES}:{python_path['value']}" if python_path["value"] else PACKAGES
        return {**container, "workingDir": container.get("workingDir") or home, "env": env}

    spec = template["spec"]
    return {**template, "spec": {**spec, "containers": [moved(container) for container in spec["containers"]]}}


def _runs_debug_command(spec: DataFlowSpec, hyperparameters: Hyperparameters) -> bool:
    """Return whether members run the debug command, which does not understand the flags."""
    mode = getattr(spec, "run_mode", None)
    return hyperparameters.passed_as == "Flags" and isinstance(mode, RunMode) and is_debug(mode)


def _with_hyperparameters(member: Member, hyperparameters: Hyperparameters, context: _PodContext) -> Member:
    """Return a member whose command gets the hyperparameters."""
    if hyperparameters.passed_as == "Environment":
        env = {name: literal(text) for name, text in variables_of(hyperparameters).items()}
        return replace(member, template=with_env(member.template, env))
    spec = member.template["spec"]
    containers = list(spec["containers"])
    containers[context.main] = with_flags(containers[context.main], flags_of(hyperparameters))
    return replace(member, template={**member.template, "spec": {**spec, "containers": containers}})


def _source(context: _PodContext, source: Source) -> _PodAdditions:
    tools, code = _at(TOOLS_VOLUME, TOOLS), _at(SOURCE_VOLUME, FOLDER)
    volumes = [_empty(SOURCE_VOLUME), _empty(TOOLS_VOLUME)]
    mounts = [code, {**tools, "readOnly": True}]
    packages = tuple(argument for file in _requirements(source) for argument in ("--packages", file))
    options = ("--into", FOLDER, "--tools", TOOLS, *packages)
    shared: tuple[Free, ...] = (code, tools)
    if source.cache is not None:
        volumes.append(_claim(CACHE_VOLUME, source.cache))
        shared = (*shared, _at(CACHE_VOLUME, CACHE))
        mounts.append({**_at(CACHE_VOLUME, CACHE), "readOnly": True})
        options = (*options, "--cache", CACHE)
    init_containers = []
    if source.git is not None or source.archive is not None:
        arguments, needs = _code(context, source)
        volumes += needs.volumes
        init_containers.append(context.container(CLONE, (*arguments, *options), *shared, *needs.mounts))
    if source.requirements != "":
        init_containers.append(_install(context, source, shared))
    return _PodAdditions(volumes=tuple(volumes), mounts=tuple(mounts), init_containers=tuple(init_containers))


def _code(context: _PodContext, source: Source) -> tuple[tuple[str, ...], _PodAdditions]:
    """Return the arguments that fetch the code, and the volumes and mounts that they need."""
    if source.git is not None:
        commit = pinned(source.git) or context.site.progress.commit
        return ("clone", *_repository(source.git), "--commit", commit), _secret("git", source.git.secret)
    archive = cast("Archive", source.archive)
    name, folder = "paceline-archive", "/paceline-archive"
    if archive.config_map is not None:
        volume = {"name": name, "configMap": {"name": archive.config_map}}
    else:
        volume = _claim(name, str(archive.claim))
    arguments = ("unpack", "--file", f"{folder}/{archive.path}", "--digest", archive.digest)
    return arguments, _PodAdditions(volumes=(volume,), mounts=({**_at(name, folder), "readOnly": True},))


def _repository(git: Git) -> tuple[str, ...]:
    secret = ("--secret", f"{SECRETS}/git") if git.secret is not None else ()
    return ("--url", git.url, *(("--revision", git.revision) if git.revision else ()), *secret)


def _install(context: _PodContext, source: Source, mounts: tuple[Free, ...]) -> Free:
    """Return the container that installs packages; it has the command's image, because they must fit its Python."""
    main = context.template["spec"]["containers"][context.main]
    copied = {
        key: main[key] for key in ("image", "imagePullPolicy", "securityContext", "env", "envFrom") if key in main
    }
    arguments = ("must" if source.requirements else "may", *_requirements(source))
    return {
        **copied,
        "name": INSTALL,
        "command": ["sh", "-c", literal(FIND_REQUIREMENTS), "sh", *(literal(argument) for argument in arguments)],
        "workingDir": working_dir(source),
        "volumeMounts": [dict(mount) for mount in mounts],
        "resources": context.resources(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _requirements(source: Source) -> tuple[str, ...]:
    """Return the requirements files to try; the first that exists is used."""
    if source.requirements is not None:
        return (f"{FOLDER}/{source.requirements}",) if source.requirements else ()
    return tuple(dict.fromkeys(f"{folder}/{USUAL_REQUIREMENTS}" for folder in (working_dir(source), FOLDER)))


def _resolve(context: _PodContext, git: Git) -> Free:
    secret = _secret("git", git.secret)
    return context.pod(context.container("resolve", ("resolve", *_repository(git)), *secret.mounts), secret.volumes)


def _input(context: _PodContext, input_spec: Input) -> _PodAdditions:
    mount = {**_at(INPUT_VOLUME, INPUT), "readOnly": True}
    if input_spec.claim is not None:
        inner = {"subPath": input_spec.path} if input_spec.path else {}
        return _PodAdditions(
            volumes=(_claim(INPUT_VOLUME, input_spec.claim, read_only=True),), mounts=({**mount, **inner},)
        )
    if input_spec.bucket is None:
        return _PodAdditions(volumes=(_folder(INPUT_VOLUME, str(input_spec.directory)),), mounts=(mount,))
    secret = _secret("input", input_spec.bucket.secret)
    arguments = ("input", *_bucket(input_spec.bucket, "input"), "--into", INPUT)
    download = context.container(BRING, arguments, _at(INPUT_VOLUME, INPUT), *secret.mounts)
    return _PodAdditions(volumes=(_empty(INPUT_VOLUME), *secret.volumes), mounts=(mount,), init_containers=(download,))


def _output(context: _PodContext, output_spec: Output) -> _PodAdditions:
    folder = f"{context.site.job}/{context.place}"
    if output_spec.bucket is not None:
        return _bucket_output(context, output_spec.bucket, output_spec.staging or Staging())
    if output_spec.claim is not None:
        inner = "/".join(part for part in (output_spec.path.strip("/"), folder) if part)
        volume = _claim(OUTPUT_VOLUME, output_spec.claim)
    else:
        inner, volume = folder, _folder(OUTPUT_VOLUME, str(output_spec.directory))
    return _PodAdditions(volumes=(volume,), mounts=({**_at(OUTPUT_VOLUME, OUTPUT), "subPath": inner},))


def _bucket_output(context: _PodContext, bucket: Bucket, staging: Staging) -> _PodAdditions:
    secret, mount = _secret("output", bucket.secret), _at(OUTPUT_VOLUME, OUTPUT)
    is_claim = staging.medium == "Claim"
    volume = _claim(OUTPUT_VOLUME, context.site.staging(context.place)) if is_claim else _empty(OUTPUT_VOLUME)
    options = ("--prefix", f"{context.site.job}/{context.place}", "--job", context.site.stem, "--from", OUTPUT)
    arguments = (*_bucket(bucket, "output"), *options)
    restore = context.container(RESTORE, ("restore", *arguments), mount, *secret.mounts)
    # The requests and limits of a sidecar are added to those of the command.
    beside = {"resources": context.resources(is_beside=True)}
    sidecar = {
        **beside,
        "restartPolicy": "Always",
        "lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", WAIT_READY]}}},
    }
    upload = context.container(KEEPER, ("sync", *arguments), mount, *secret.mounts, **sidecar)
    flush = context.container("flush", ("flush", *arguments), mount, *secret.mounts)
    keeping = OutputUpload(
        container=KEEPER,
        flush=context.pod(flush, (volume, *secret.volumes)) if is_claim else None,
        claim=_claim_spec(staging) if is_claim else None,
    )
    return _PodAdditions(
        volumes=(volume, *secret.volumes), mounts=(mount,), init_containers=(restore, upload), keeping=keeping
    )


def _claim_spec(staging: Staging) -> Free:
    storage_class = {} if staging.storage_class_name is None else {"storageClassName": staging.storage_class_name}
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": staging.size}}, **storage_class}


def _bucket(bucket: Bucket, purpose: str) -> tuple[str, ...]:
    options = {"--url": bucket.url, "--endpoint": bucket.endpoint, "--region": bucket.region}
    if bucket.secret is not None:
        options["--secret"] = f"{SECRETS}/{purpose}"
    return tuple(argument for pair in options.items() if pair[1] for argument in pair)


def _secret(purpose: str, name: str | None) -> _PodAdditions:
    """Return the volume and mount of a Secret, for one of our containers only."""
    if name is None:
        return _PodAdditions()
    volume = f"paceline-secret-{purpose}"
    return _PodAdditions(
        volumes=({"name": volume, "secret": {"secretName": name, "defaultMode": 0o444}},),
        mounts=({**_at(volume, f"{SECRETS}/{purpose}"), "readOnly": True},),
    )


def _least(amount: str, limit: object) -> str:
    """Return the smaller of two quantities; the limit may be any that a valid template has."""
    return str(limit) if parse(str(limit)) < parse(amount) else amount


def _has_mount(template: Mapping[str, Any], path: str) -> bool:
    containers = template["spec"]["containers"]
    mounts = [mount for container in containers for mount in container.get("volumeMounts") or ()]
    return any(mount["mountPath"].rstrip("/") == path for mount in mounts)


def _at(volume: str, path: str) -> Free:
    return {"name": volume, "mountPath": path}


def _empty(name: str) -> Free:
    return {"name": name, "emptyDir": {}}


def _folder(name: str, path: str) -> Free:
    return {"name": name, "hostPath": {"path": path, "type": "Directory"}}


def _claim(name: str, claim: str, *, read_only: bool = False) -> Free:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim, **({"readOnly": True} if read_only else {})}}
