"""Named code repositories: URL, revision, folder, and the secret with the credentials."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from paceline.apimachinery.field_errors import did_you_mean, invalid, required
from paceline.apimachinery.meta import Object, labels_of, name_of
from paceline.apimachinery.name_validation import better_name, label_problem, subdomain_problem
from paceline.client.interface import CONFIG_MAPS, Select
from paceline.client.sync import DirectCluster
from paceline.errors import AlreadyExists, Fault, Invalid, NotFound
from paceline.kinds.spec.source import Git, Source, check_source
from paceline.model.well_known_labels import CODE

# Field paths and the CLI options that set them.
OPTIONS = {
    "-.git.url": "--git",
    "-.git.revision": "--revision",
    "-.git.directory": "--directory",
    "-.git.secret": "--secret",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRepository:
    """A named repository; the credentials are in a secret that it refers to."""

    name: str
    url: str
    revision: str = ""
    directory: str = ""
    secret: str = ""
    # Empty until it is created.
    object: Object = field(default_factory=dict)

    @property
    def values(self) -> dict[str, str]:
        """Return the values for a template."""
        return {"url": self.url, "revision": self.revision, "directory": self.directory, "secret": self.secret}

    def check(self) -> None:
        """Raise Invalid if the repository cannot be fetched, with the names of the CLI options as paths."""
        check_name(self.name, noun="repo")
        git = Git(url=self.url, revision=self.revision, directory=self.directory)
        faults = [_in_options(fault) for fault in check_source(Source(git=git), "-")]
        if self.secret and (problem := subdomain_problem(self.secret)):
            faults.append(invalid("--secret", self.secret, problem))
        if faults:
            raise Invalid(tuple(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRepositories:
    """The named code repositories of one namespace."""

    cluster: DirectCluster
    namespace: str

    def all(self) -> tuple[CodeRepository, ...]:
        """Return all named code repositories."""
        ours = Select(namespace=self.namespace, labels=CODE)
        repos = (_repo(config_map) for config_map in self.cluster.list(CONFIG_MAPS, ours).items)
        return tuple(sorted(repos, key=lambda repo: repo.name))

    def named(self, name: str) -> CodeRepository:
        """Return a named code repository; NotFound suggests a similar name."""
        return pick(name, self.all(), noun="repo", namespace=self.namespace)

    def create(self, repo: CodeRepository) -> CodeRepository:
        """Create a named code repository."""
        repo.check()
        check_new(repo.name, self.all(), noun="repo")
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": repo.name, "namespace": self.namespace, "labels": {CODE: repo.name}},
            "data": {key: text for key, text in repo.values.items() if text},
        }
        try:
            return _repo(self.cluster.create(CONFIG_MAPS, config_map))
        except AlreadyExists as error:
            raise AlreadyExists(f"repo {repo.name}, or another config map of that name, already exists") from error

    def delete(self, repo: CodeRepository) -> None:
        """Delete a named code repository; the Git repository and the applications that use it are kept."""
        self.cluster.delete(CONFIG_MAPS, (self.namespace, name_of(repo.object)))


def _repo(config_map: Object) -> CodeRepository:
    data = config_map.get("data") or {}
    fields = {key: str(data.get(key) or "") for key in ("url", "revision", "directory", "secret")}
    return CodeRepository(name=labels_of(config_map)[CODE], object=config_map, **fields)


def _in_options(fault: Fault) -> Fault:
    hint = fault.hint.replace("-.git.secret", OPTIONS["-.git.secret"])
    return replace(fault, path=OPTIONS[fault.path], hint=hint)


class Named(Protocol):
    """An object with a user-chosen name."""

    @property
    def name(self) -> str:
        """Return the name."""


AnyNamed = TypeVar("AnyNamed", bound=Named)


def pick(name: str, candidates: Iterable[AnyNamed], *, noun: str, namespace: str) -> AnyNamed:
    """Return the candidate of this name; NotFound suggests a similar one."""
    by_name = {candidate.name: candidate for candidate in candidates}
    if name in by_name:
        return by_name[name]
    hint = did_you_mean(name, by_name).removeprefix(", ") or f"there are: {', '.join(by_name) or 'none'}"
    raise NotFound(f"there is no {noun} named {name!r} in namespace {namespace!r}; {hint}")


def check_name(name: str, *, noun: str) -> None:
    """Raise Invalid for an invalid name."""
    if not name:
        raise Invalid((required("name", f"give the {noun} a name, such as mnist"),))
    if problem := label_problem(name):
        raise Invalid((invalid("name", name, f"{problem}{better_name(name)}"),))


def check_new(name: str, existing: Iterable[Named], *, noun: str) -> None:
    """Raise Invalid for an invalid name, AlreadyExists for one that is taken."""
    check_name(name, noun=noun)
    if any(entry.name == name for entry in existing):
        raise AlreadyExists(f"{noun} {name} already exists; to list all: paceline {noun} list")
