"""People, drafts and a worker's answer, for the tests of the editor, the freeze page and the catalogue."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.test import Client
from django.utils import timezone

from runs.actions.actors import person_actor
from runs.actions.drafts import create_draft
from runs.actions.inspection import inspection_of, request_inspection, store_answer
from runs.models import Job, Membership, Plan, Study, TaskSet, User
from runs.presenters.catalogue.planform import FormList, build_form, walk
from runs.presenters.catalogue.starts import MINIMAL
from runs.storage import blob_store
from tests.pages.state import World, fake_sha
from workbench.contracts.jobs import DescribeResult
from workbench.contracts.wire import to_wire


def member(study: Study, role: str, name: str | None = None) -> User:
    """A person with one role in the study."""
    user, _ = User.objects.get_or_create(username=name or role)
    Membership.objects.get_or_create(study=study, user=user, role=role)
    return user


def client_of(user: User) -> Client:
    """A client that has signed in as the user."""
    client = Client()
    client.force_login(user)
    return client


def hidden_study(by: User) -> Study:
    """A private study that nobody is a member of."""
    return Study.objects.create(
        uid="5d1fbd4e-0000-4000-8000-000000000001", slug="secret", title_en="Secret", created_at=timezone.now(),
        created_by=person_actor(by),
    )  # fmt: skip


def minimal(study: str = "fatal-mask-pair", name: str = "mine") -> str:
    """The least text that is valid."""
    return MINIMAL.format(study=study, name=name)


def draft(world: World, text: str | None = None, name: str = "mine") -> Plan:
    """A draft of the world's study, written by a researcher."""
    by = person_actor(member(world.study, "researcher"))
    return create_draft(world.study, name, text or minimal(name=name), by=by, at=timezone.now())


def posted(text: str, document: dict[str, Any], revision: int = 1, **changed: str) -> dict[str, str]:
    """What a browser posts for an editor that shows ``text``; ``changed``: inputs by path, dots as ``__``."""
    fields = {"yaml": text, "base": text, "revision": str(revision)}
    for part in walk(build_form(document)):
        if isinstance(part, FormList):
            fields[f"n:{part.path}"] = str(part.count)
        else:
            fields[f"f:{part.path}"] = part.value
    return {**fields, **{f"f:{path.replace('__', '.')}": value for path, value in changed.items()}}


def answer(world: World, plan: Plan, *, stored: bool = True) -> Job:
    """Ask for an inspection and answer it as a worker would, with the world's task set.

    ``stored``: whether the answer's blobs are referred to, as a worker does.
    """
    by = person_actor(member(world.study, "researcher"))
    job = request_inspection(plan, by=by, at=timezone.now())
    store = blob_store()
    found = DescribeResult(
        base_model_sha256=fake_sha("base"), tokenizer_sha256=fake_sha("tokenizer"),
        parent_adapter_sha256=store.put(b"parent"), parent_adapter_bytes=6, vocabulary_sha256=store.put(b'["a"]'),
        parameters=550_000, trainable_parameters=36_000, runtime="cpu-torch-2.13-t1", runtime_facts={},
        formatter=fake_sha("formatter"), environment="evidence_search", environment_version="2",
        success_definition="evidence_search.success/1", environment_code_sha256=fake_sha("environment"),
        reward_code_sha256=fake_sha("reward"), harness_code_sha256=fake_sha("harness"),
        task_set_sha256=TaskSet.objects.get().sha256, warm_start={"recipe_sha256": fake_sha("recipe")},
    )  # fmt: skip
    Job.objects.filter(pk=job.pk).update(state="succeeded", result=to_wire(found))
    if stored:
        with transaction.atomic():
            store_answer(found)
    newest = inspection_of(plan)
    assert newest is not None
    return newest
