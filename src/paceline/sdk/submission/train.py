"""Training with your own code: the values of the model-training template and the objects it needs."""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from paceline.apimachinery.meta import Object, key_of, labels_of, name_of, owned_by
from paceline.client.interface import CONFIG_MAPS, SECRETS, Collection
from paceline.errors import AlreadyExists, MethodNotAllowed, NotFound, PacelineError
from paceline.kinds.apps.expand import stem_of_app
from paceline.kinds.apps.templates.model_training import TEMPLATE
from paceline.kinds.apps.templates.values import merged
from paceline.model.well_known_labels import APP
from paceline.presentation.apps.app_change import reject_unchanged
from paceline.presentation.apps.app_summary import status_of
from paceline.sdk.apps.app import APPS, KIND
from paceline.sdk.apps.values import check, render
from paceline.sdk.client import Session
from paceline.sdk.job import JobRef
from paceline.sdk.submission.source_archive import Packed, pack

# Placeholder for the digest before the code is packed.
NO_DIGEST = f"sha256:{'0' * 64}"
# Placeholder for the URL before the named code repository is looked up.
NO_URL = "https://example.org/looked-up-later.git"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPiece:
    """An object that an application needs, and whether it was created for it."""

    where: Collection
    object: Object
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A training to run."""

    name: str
    values: Mapping[str, Any]
    # The local script or folder, if the code is not in a repository.
    path: str = ""
    # The name of a code repository, which is looked up in the cluster.
    repo: str = ""
    git_user: str = ""
    password: str = field(default="", repr=False)
    data: Mapping[str, str] = field(default_factory=dict)
    # Objects that the application needs. It becomes their owner once it exists.
    pieces: tuple[AppPiece, ...] = ()

    @property
    def stem(self) -> str:
        """Return the prefix of the names of its objects."""
        return stem_of_app(self.name)

    def app(self) -> Object:
        """Return the application object."""
        values = {**self.values, **({"data": dict(self.data)} if self.data else {})}
        return render(self.name, TEMPLATE, merged(TEMPLATE.defaults(), values))

    def with_repo(self, saved: Mapping[str, str]) -> Self:
        """Return the plan with a named code repository; options given explicitly take precedence."""
        explicit = {name: text for name, text in self.values["git"].items() if text}
        return replace(self, values={**self.values, "git": {**saved, **explicit}})

    def check(self) -> None:
        """Raise Invalid for a plan that cannot run, before anything is sent or started."""
        plan = self
        if self.path:
            archive = {"digest": NO_DIGEST, "configMap": "checked-later"}
            plan = replace(self, values={**self.values, "archive": archive})
        if self.repo:
            plan = self.with_repo({"url": NO_URL})
        check(plan.app())


def name_from(path: str) -> str:
    """Return a name for an application from its script or folder."""
    stem = Path(path).resolve().stem if not Path(path).is_dir() else Path(path).resolve().name
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:30].rstrip("-") or "training"


def upload_source(session: Session, plan: TrainingPlan) -> TrainingPlan:
    """Return the plan with its code uploaded, or with the secret for its repository created."""
    if plan.path:
        return _with_archive(session, plan, pack(plan.path))
    if not plan.git_user:
        return plan
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{plan.stem}-git", "namespace": session.namespace, "labels": {APP: plan.stem}},
        "stringData": {"username": plan.git_user, "password": plan.password},
    }
    piece = _create(session, SECRETS, secret)
    git = {**plan.values["git"], "secret": name_of(piece.object)}
    return replace(plan, values={**plan.values, "git": git}, pieces=(piece,))


def _with_archive(session: Session, plan: TrainingPlan, packed: Packed) -> TrainingPlan:
    name = f"{plan.stem}-source-{packed.digest.removeprefix('sha256:')[:10]}"
    manifest = packed.config_map(name, {APP: plan.stem})
    manifest["metadata"]["namespace"] = session.namespace
    piece = _create(session, CONFIG_MAPS, manifest)
    archive = {"digest": packed.digest, "configMap": name}
    return replace(plan, values={**plan.values, "archive": archive}, pieces=(piece,))


def _create(session: Session, where: Collection, manifest: Object) -> AppPiece:
    """Create an object, or update it if it belongs to the same application; else raise AlreadyExists."""
    try:
        return AppPiece(where=where, object=session.cluster.create(where, manifest), is_new=True)
    except AlreadyExists:
        existing = session.cluster.get(where, *key_of(manifest))
    if labels_of(existing).get(APP) != labels_of(manifest)[APP]:
        label = f"{str(manifest['kind']).lower()} {name_of(manifest)}"
        raise AlreadyExists(
            f"{label} already exists and belongs to another object; choose another name for the application"
        )
    if "stringData" in manifest:
        existing = session.cluster.patch(where, key_of(manifest), {"stringData": manifest["stringData"]})
    return AppPiece(where=where, object=existing, is_new=False)


def submit(session: Session, plan: TrainingPlan) -> Object:
    """Create the application, which then owns its pieces; if it is rejected, delete the new ones."""
    app = plan.app()
    app["metadata"]["namespace"] = session.namespace
    try:
        created = session.cluster.create(APPS, app)
    except AlreadyExists:
        raise
    except PacelineError:
        for piece in plan.pieces:
            if piece.is_new:
                # Report the first error, not one of the cleanup.
                with contextlib.suppress(PacelineError):
                    session.cluster.delete(piece.where, key_of(piece.object))
        raise
    _adopt(session, plan, created)
    return created


def revise(session: Session, plan: TrainingPlan) -> int:
    """Update the application and return the number of its next revision; raise AlreadyExists if nothing changes."""
    ref = session.app(plan.name)
    if ref is None:
        raise NotFound(f"there is no application named {plan.name!r}")
    current = ref.read()
    updated = {**current, "spec": {**current["spec"], **plan.app()["spec"]}}
    reject_unchanged(current, updated)
    _adopt(session, plan, ref.change(updated))
    return status_of(current).revision + 1


def _adopt(session: Session, plan: TrainingPlan, app: Object) -> None:
    for piece in plan.pieces:
        change = {"metadata": {"ownerReferences": [owned_by(app)]}}
        session.cluster.patch(piece.where, key_of(piece.object), change)


def wait_job(session: Session, name: str) -> JobRef:
    """Wait until the current revision has its job and return it; MethodNotAllowed says why there is none."""
    for event in session.watch((KIND,), name=name):
        if event.is_gone:
            break
        status = status_of(event.object)
        generation = int(event.object["metadata"].get("generation", 1))
        if status.observed_generation != generation:
            continue
        if status.job is not None:
            with contextlib.suppress(NotFound):
                return session.job(name)
        elif status.waiting:
            raise MethodNotAllowed(f"app/{name}: {status.waiting}")
    raise NotFound(f"app/{name} was deleted")
