"""Code, data and values put into the pods of a gang: volumes, containers before and beside the command, its words.

In     a gang whose framework has been removed, and what its spec says about code, data and values.
Out    the same gang, whose pods fetch the code, bring the data and carry the results away by themselves.
Never  knows a framework, or what the program does that runs in our own image.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from paceline.kinds.data import INPUT, OUTPUT, Bucket, Input, Output, Staging
from paceline.kinds.fed import Fed
from paceline.kinds.fields import Free
from paceline.kinds.hyperparameters import Hyperparameters, flags_of, variables_of, with_flags
from paceline.kinds.runmode import RunMode, is_debug
from paceline.kinds.source import FOLDER, USUAL_REQUIREMENTS, Archive, Git, Source, pinned, working_dir
from paceline.kinds.template import each_container, literal, with_env
from paceline.objects.gang import KEEPER, Gang, Keeping, Member, Place, Site

# Where the program of ours lives that does the work in the pods; on the embedded cluster it is Paceline itself.
IMAGE = "paceline/porter:0.1.0"
PROGRAM = ("python", "-m", "paceline.porter")
# The folder that the steps of one pod share: uv, the installer, and the packages that it installs.
TOOLS, CACHE, SECRETS = "/paceline", "/paceline-cache", "/paceline-secrets"
PACKAGES = f"{TOOLS}/site"
SOURCE_VOLUME, TOOLS_VOLUME, CACHE_VOLUME = "paceline-source", "paceline-tools", "paceline-cache"
INPUT_VOLUME, OUTPUT_VOLUME = "paceline-input", "paceline-output"
CLONE, INSTALL, BRING, RESTORE = (f"paceline-{each}" for each in ("clone", "install", "input", "restore"))
# In which container the command runs, where a pod has several.
TRAINING = ("pytorch", "python", "tensorflow", "xgboost")
# What a sidecar has for its last copy, after the command has had its own time to end.
USUAL_GRACE, LAST_COPY_SECONDS = 30, 60
# What a pod of ours takes over from those that it works for.
SHARED = ("hostNetwork", "imagePullSecrets", "nodeSelector", "securityContext", "serviceAccountName", "tolerations")
SAME_USER = ("runAsUser", "runAsGroup", "runAsNonRoot")
NOTHING_KEPT = "nothing of /output was kept, because spec.output says nowhere to"
# A sidecar that is told to end before it listens is cut short: the command waits the moment until it does.
WAIT_READY = "i=0; until [ -e /tmp/porter-ready ] || [ $i -ge 600 ]; do i=$((i+1)); sleep 0.05; done"
# $1: whether there has to be one; the others are where it may lie.
FIND_REQUIREMENTS = f"""must=$1; shift
for file in "$@"; do
  if [ -f "$file" ]; then
    if [ -d {CACHE} ] && python3 {TOOLS}/found.py "$file"; then exit 0; fi
    exec python3 {TOOLS}/install.py "$file"
  fi
done
if [ "$must" = must ]; then echo "the code has no file $1" >&2; exit 1; fi
echo "there is no requirements.txt, so nothing is installed" >/dev/termination-log"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """What one part of a spec puts into a pod."""

    volumes: tuple[Free, ...] = ()
    # In every container of the author's.
    mounts: tuple[Free, ...] = ()
    # Containers of ours, before those of the author's.
    before: tuple[Free, ...] = ()
    keeping: Keeping | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hold:
    """The pod that is loaded: whose it is, and the container in which the command runs."""

    site: Site
    place: Place
    template: Mapping[str, Any]

    @property
    def main(self) -> int:
        """Find the container in which the command runs."""
        names = [each["name"] for each in self.template["spec"]["containers"]]
        return next((names.index(name) for name in (*TRAINING, self.place.role) if name in names), 0)

    def ours(self, name: str, words: tuple[str, ...], *mounts: Free, **more: Any) -> Free:
        """Write a container of our own image, of the same user as the command: it has to read what that writes."""
        context = self.template["spec"]["containers"][self.main].get("securityContext") or {}
        same = {key: context[key] for key in SAME_USER if key in context}
        return {
            "name": name,
            "image": IMAGE,
            "command": [*PROGRAM, *(literal(word) for word in words)],
            "volumeMounts": [dict(each) for each in mounts],
            "securityContext": {"allowPrivilegeEscalation": False, **same},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            **more,
        }

    def pod(self, container: Free, volumes: tuple[Free, ...]) -> Free:
        """Write a pod of ours that does one thing."""
        spec = self.template["spec"]
        shared = {key: spec[key] for key in SHARED if key in spec}
        return {"spec": {**shared, "containers": [container], "volumes": [dict(each) for each in volumes]}}


def feed(gang: Gang, spec: Fed, site: Site) -> Gang:
    """Load every member with what the spec says; whoever starts processes in the others hands them the flags."""
    members = tuple(_fed(member, spec, site) for member in gang.members)
    if spec.hyperparameters is not None and not _only_waits(spec, spec.hyperparameters):
        # Flags stand behind the one command that starts the others; variables are those of the pod a process runs in.
        is_one = gang.launch is not None and spec.hyperparameters.passed_as == "Flags"
        told = (gang.leader,) if is_one else tuple(each.place for each in members)
        members = tuple(_valued(each, spec.hyperparameters, site) if each.place in told else each for each in members)
    remark = NOTHING_KEPT if spec.source is not None and spec.output is None else ""
    gang = replace(gang, members=members, remark=remark, left=tuple(_left(gang, spec, site)))
    if spec.source is None or spec.source.git is None:
        return gang
    if commit := pinned(spec.source.git) or site.commit:
        return replace(gang, commit=commit)
    hold = _Hold(site=site, place=gang.leader, template=gang.member(gang.leader).template)
    return replace(gang, resolve=_resolve(hold, spec.source.git))


def _left(gang: Gang, spec: Fed, site: Site) -> Iterator[Member]:
    """Give those who left when the job shrank, as far as their output is copied; they are like those who stay."""
    members = {each.place: each for each in gang.members}
    for place in site.left:
        like = next((each for each in gang.members if each.place.role == place.role), gang.members[0])
        keeping = spec.output and _output(_Hold(site=site, place=place, template=like.template), spec.output).keeping
        if keeping and place not in members:
            yield replace(like, place=place, keeping=keeping)


def _fed(member: Member, spec: Fed, site: Site) -> Member:
    hold = _Hold(site=site, place=member.place, template=member.template)
    loads = []
    if spec.source is not None:
        loads.append(_source(hold, spec.source))
    if spec.input is not None:
        loads.append(_input(hold, spec.input))
    if spec.output is not None:
        loads.append(_output(hold, spec.output))
    elif spec.source is not None and not _has_mount(member.template, OUTPUT):
        # The code may write to /output wherever it runs; nobody said where to keep it.
        loads.append(_Load(volumes=(_empty(OUTPUT_VOLUME),), mounts=(_at(OUTPUT_VOLUME, OUTPUT),)))
    if not loads:
        return member
    template = _loaded(member.template, loads)
    if spec.source is not None:
        template = _at_home(template, spec.source)
    keeping = next((each.keeping for each in loads if each.keeping is not None), None)
    if keeping is not None:
        own = template["spec"].get("terminationGracePeriodSeconds")
        grace = (USUAL_GRACE if own is None else int(own)) + LAST_COPY_SECONDS
        template = {**template, "spec": {**template["spec"], "terminationGracePeriodSeconds": grace}}
    return replace(member, template=template, keeping=keeping)


def _loaded(template: Mapping[str, Any], loads: list[_Load]) -> Free:
    mounts = [dict(mount) for load in loads for mount in load.mounts]

    def mounted(container: Mapping[str, Any]) -> Free:
        return {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), *mounts]}

    changed = each_container(template, mounted)
    spec = changed["spec"]
    before = [container for load in loads for container in load.before]
    return {
        **changed,
        "spec": {
            **spec,
            "initContainers": [*before, *(spec.get("initContainers") or ())],
            "volumes": [*(spec.get("volumes") or ()), *(dict(each) for load in loads for each in load.volumes)],
        },
    }


def _at_home(template: Free, source: Source) -> Free:
    """Let the author's containers work in the code's folder, and find the packages it asks for."""
    home = working_dir(source)
    has_packages = source.requirements != ""

    def moved(container: Mapping[str, Any]) -> Free:
        env = [dict(each) for each in container.get("env") or ()]
        if has_packages:
            own = next((each for each in env if each["name"] == "PYTHONPATH"), None)
            if own is None:
                env.insert(0, {"name": "PYTHONPATH", "value": PACKAGES})
            elif "value" in own:
                own["value"] = f"{PACKAGES}:{own['value']}" if own["value"] else PACKAGES
        return {**container, "workingDir": container.get("workingDir") or home, "env": env}

    spec = template["spec"]
    return {**template, "spec": {**spec, "containers": [moved(each) for each in spec["containers"]]}}


def _only_waits(spec: Fed, given: Hyperparameters) -> bool:
    """Tell whether members run something else than the command, which would not know what to do with flags."""
    mode = getattr(spec, "run_mode", None)
    return given.passed_as == "Flags" and isinstance(mode, RunMode) and is_debug(mode)


def _valued(member: Member, given: Hyperparameters, site: Site) -> Member:
    """Hand the values to the command."""
    if given.passed_as == "Environment":
        told = {name: literal(text) for name, text in variables_of(given).items()}
        return replace(member, template=with_env(member.template, told))
    hold = _Hold(site=site, place=member.place, template=member.template)
    spec = member.template["spec"]
    containers = list(spec["containers"])
    containers[hold.main] = with_flags(containers[hold.main], flags_of(given))
    return replace(member, template={**member.template, "spec": {**spec, "containers": containers}})


def _source(hold: _Hold, source: Source) -> _Load:
    tools, code = _at(TOOLS_VOLUME, TOOLS), _at(SOURCE_VOLUME, FOLDER)
    volumes = [_empty(SOURCE_VOLUME), _empty(TOOLS_VOLUME)]
    mounts = [code, {**tools, "readOnly": True}]
    wanted = tuple(word for file in _requirements(source) for word in ("--packages", file))
    into = ("--into", FOLDER, "--tools", TOOLS, *wanted)
    shared: tuple[Free, ...] = (code, tools)
    if source.cache is not None:
        volumes.append(_claim(CACHE_VOLUME, source.cache))
        shared = (*shared, _at(CACHE_VOLUME, CACHE))
        mounts.append({**_at(CACHE_VOLUME, CACHE), "readOnly": True})
        into = (*into, "--cache", CACHE)
    before = []
    if source.git is not None or source.archive is not None:
        words, needs = _code(hold, source)
        volumes += needs.volumes
        before.append(hold.ours(CLONE, (*words, *into), *shared, *needs.mounts))
    if source.requirements != "":
        before.append(_install(hold, source, shared))
    return _Load(volumes=tuple(volumes), mounts=tuple(mounts), before=tuple(before))


def _code(hold: _Hold, source: Source) -> tuple[tuple[str, ...], _Load]:
    """Give the words by which the code comes, and what has to be there for them."""
    if source.git is not None:
        commit = pinned(source.git) or hold.site.commit
        return ("clone", *_repository(source.git), "--commit", commit), _secret("git", source.git.secret)
    archive = cast("Archive", source.archive)
    name, folder = "paceline-archive", "/paceline-archive"
    if archive.config_map is not None:
        volume = {"name": name, "configMap": {"name": archive.config_map}}
    else:
        volume = _claim(name, str(archive.claim))
    words = ("unpack", "--file", f"{folder}/{archive.path}", "--digest", archive.digest)
    return words, _Load(volumes=(volume,), mounts=({**_at(name, folder), "readOnly": True},))


def _repository(git: Git) -> tuple[str, ...]:
    known = ("--secret", f"{SECRETS}/git") if git.secret is not None else ()
    return ("--url", git.url, *(("--revision", git.revision) if git.revision else ()), *known)


def _install(hold: _Hold, source: Source, mounts: tuple[Free, ...]) -> Free:
    """Write the step that installs packages: in the author's image, because they have to fit its interpreter."""
    main = hold.template["spec"]["containers"][hold.main]
    same = {key: main[key] for key in ("image", "imagePullPolicy", "securityContext", "env", "envFrom") if key in main}
    words = ("must" if source.requirements else "may", *_requirements(source))
    return {
        **same,
        "name": INSTALL,
        "command": ["sh", "-c", literal(FIND_REQUIREMENTS), "sh", *(literal(word) for word in words)],
        "workingDir": working_dir(source),
        "volumeMounts": [dict(each) for each in mounts],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _requirements(source: Source) -> tuple[str, ...]:
    """Give the files that may say which packages the code needs; the first of them that is there does."""
    if source.requirements is not None:
        return (f"{FOLDER}/{source.requirements}",) if source.requirements else ()
    return tuple(dict.fromkeys(f"{folder}/{USUAL_REQUIREMENTS}" for folder in (working_dir(source), FOLDER)))


def _resolve(hold: _Hold, git: Git) -> Free:
    secret = _secret("git", git.secret)
    return hold.pod(hold.ours("resolve", ("resolve", *_repository(git)), *secret.mounts), secret.volumes)


def _input(hold: _Hold, given: Input) -> _Load:
    mount = {**_at(INPUT_VOLUME, INPUT), "readOnly": True}
    if given.claim is not None:
        inner = {"subPath": given.path} if given.path else {}
        return _Load(volumes=(_claim(INPUT_VOLUME, given.claim, read_only=True),), mounts=({**mount, **inner},))
    if given.bucket is None:
        return _Load(volumes=(_folder(INPUT_VOLUME, str(given.directory)),), mounts=(mount,))
    secret = _secret("input", given.bucket.secret)
    words = ("input", *_bucket(given.bucket, "input"), "--into", INPUT)
    before = hold.ours(BRING, words, _at(INPUT_VOLUME, INPUT), *secret.mounts)
    return _Load(volumes=(_empty(INPUT_VOLUME), *secret.volumes), mounts=(mount,), before=(before,))


def _output(hold: _Hold, given: Output) -> _Load:
    own = f"{hold.site.job}/{hold.place}"
    if given.bucket is not None:
        return _bucket_output(hold, given.bucket, given.staging or Staging())
    if given.claim is not None:
        inner = "/".join(part for part in (given.path.strip("/"), own) if part)
        volume = _claim(OUTPUT_VOLUME, given.claim)
    else:
        inner, volume = own, _folder(OUTPUT_VOLUME, str(given.directory))
    return _Load(volumes=(volume,), mounts=({**_at(OUTPUT_VOLUME, OUTPUT), "subPath": inner},))


def _bucket_output(hold: _Hold, bucket: Bucket, staging: Staging) -> _Load:
    secret, mount = _secret("output", bucket.secret), _at(OUTPUT_VOLUME, OUTPUT)
    is_claim = staging.medium == "Claim"
    volume = _claim(OUTPUT_VOLUME, hold.site.staging(hold.place)) if is_claim else _empty(OUTPUT_VOLUME)
    own = ("--prefix", f"{hold.site.job}/{hold.place}", "--job", hold.site.stem, "--from", OUTPUT)
    words = (*_bucket(bucket, "output"), *own)
    restore = hold.ours(RESTORE, ("restore", *words), mount, *secret.mounts)
    beside = {"restartPolicy": "Always", "lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", WAIT_READY]}}}}
    keep = hold.ours(KEEPER, ("sync", *words), mount, *secret.mounts, **beside)
    flush = hold.ours("flush", ("flush", *words), mount, *secret.mounts)
    keeping = Keeping(
        container=KEEPER,
        flush=hold.pod(flush, (volume, *secret.volumes)) if is_claim else None,
        claim=_claim_spec(staging) if is_claim else None,
    )
    return _Load(volumes=(volume, *secret.volumes), mounts=(mount,), before=(restore, keep), keeping=keeping)


def _claim_spec(staging: Staging) -> Free:
    chosen = {} if staging.storage_class_name is None else {"storageClassName": staging.storage_class_name}
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": staging.size}}, **chosen}


def _bucket(bucket: Bucket, purpose: str) -> tuple[str, ...]:
    given = {"--url": bucket.url, "--endpoint": bucket.endpoint, "--region": bucket.region}
    if bucket.secret is not None:
        given["--secret"] = f"{SECRETS}/{purpose}"
    return tuple(word for pair in given.items() if pair[1] for word in pair)


def _secret(purpose: str, name: str | None) -> _Load:
    """Give a secret's files to one of our containers, and to no other."""
    if name is None:
        return _Load()
    volume = f"paceline-secret-{purpose}"
    return _Load(
        volumes=({"name": volume, "secret": {"secretName": name, "defaultMode": 0o444}},),
        mounts=({**_at(volume, f"{SECRETS}/{purpose}"), "readOnly": True},),
    )


def _has_mount(template: Mapping[str, Any], path: str) -> bool:
    every = [mount for each in template["spec"]["containers"] for mount in each.get("volumeMounts") or ()]
    return any(mount["mountPath"].rstrip("/") == path for mount in every)


def _at(volume: str, path: str) -> Free:
    return {"name": volume, "mountPath": path}


def _empty(name: str) -> Free:
    return {"name": name, "emptyDir": {}}


def _folder(name: str, path: str) -> Free:
    return {"name": name, "hostPath": {"path": path, "type": "Directory"}}


def _claim(name: str, claim: str, *, read_only: bool = False) -> Free:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim, **({"readOnly": True} if read_only else {})}}
