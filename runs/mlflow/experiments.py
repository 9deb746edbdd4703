"""Experiments: studies by name and id, new ones, and the list of those that the caller sees."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from runs.access import may_create_study, visible_studies
from runs.actions.audit import note
from runs.actions.studies import StudyExists, create_study
from runs.errors import NotAllowed
from runs.mlflow import wire
from runs.mlflow.base import DEFAULT_ID, endpoint, principal_of, study_by_id, text_of
from runs.mlflow.errors import EXISTS, MISSING, MlflowError, answer, invalid
from runs.mlflow.paging import offset_of, token_of
from runs.models import Study

DEFAULT_TITLE = "Default"
MOST = 50_000


def slug_of(name: str) -> str:
    """A study's slug for an experiment's name: its letters and digits, with a hash where that is not all."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if plain == name and 3 <= len(plain) <= 64 and plain != "new":
        return plain
    mark = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{plain[:50].strip('-') or 'experiment'}-{mark}"


def find(request: HttpRequest, name: str) -> Study | None:
    """The study that an experiment's name means: its slug, else its title, the newest of several."""
    rows = visible_studies(principal_of(request))
    found = rows.filter(slug=name).first() or rows.filter(slug=slug_of(name), title_en=name).first()
    return found or rows.filter(title_en=name).order_by("-pk").first()


def create(request: HttpRequest, name: str, slug: str) -> Study:
    """A private study whose admin is the caller."""
    principal = principal_of(request)
    if not may_create_study(principal):
        raise NotAllowed(
            f"experiment {name[:100]!r}: got a token without the scope write, expected one with it to found a study, "
            "or the name of a study in which you may log"
        )
    assert principal.user is not None
    study = create_study(slug, title={"en": name}, summary={}, by=principal.user, at=timezone.now())
    note(study=study)
    return study


def default_study(request: HttpRequest) -> Study:
    """The caller's own study for clients that name no experiment; made on first use."""
    user = principal_of(request).user
    assert user is not None
    slug = f"default-{hashlib.sha256(user.get_username().encode()).hexdigest()[:10]}"
    return Study.objects.filter(slug=slug).first() or create(request, DEFAULT_TITLE, slug)


def by_id(request: HttpRequest, text: str) -> Study:
    """The study of an experiment id; "0" is the caller's default."""
    return default_study(request) if text == DEFAULT_ID else study_by_id(request, text)


@endpoint("GET")
def get_by_name(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """The experiment of a name."""
    name = text_of(given, "experiment_name")
    study = default_study(request) if name == DEFAULT_TITLE else find(request, name)
    if study is None:
        raise MlflowError(MISSING, f"Could not find experiment with name '{name[:300]}'")
    return answer({"experiment": wire.experiment(study)})


@endpoint("POST")
def make(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """A new experiment: a private study that the caller administers."""
    name = text_of(given, "name")
    if len(name) > 300 or not name.strip():
        raise invalid("name", name, "1 to 300 characters")
    if find(request, name) is not None:
        raise MlflowError(EXISTS, f"Experiment '{name}' already exists.")
    user = principal_of(request).user
    assert user is not None
    try:
        study = create(request, name, slug_of(name))
    except StudyExists:  # somebody else's, which the caller does not see: names of experiments are each one's own
        mark = hashlib.sha256(f"{user.get_username()}/{name}".encode()).hexdigest()[:10]
        study = create(request, name, f"{slug_of(name)[:50].strip('-')}-{mark}")
    return answer({"experiment_id": str(study.pk)})


@endpoint("GET")
def get(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """The experiment of an id."""
    return answer({"experiment": wire.experiment(by_id(request, text_of(given, "experiment_id")))})


@endpoint("GET", "POST")
def search(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Studies that the caller sees, newest first; only a filter by name is known."""
    most = given.get("max_results", 1000)
    if isinstance(most, str) and most.isdigit():
        most = int(most)
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST:
        raise invalid("max_results", most, f"a number from 1 to {MOST}")
    rows = visible_studies(principal_of(request))
    if given.get("view_type") == "DELETED_ONLY":
        return answer({"experiments": []})
    if text := text_of(given, "filter", needed=False):
        match = re.fullmatch(r"\s*(?:attributes?\.)?name\s*=\s*('([^']*)'|\"([^\"]*)\")\s*", text)
        if match is None:
            raise invalid("filter", text, "name = '…'; other filters of experiments are not known here")
        rows = rows.filter(title_en=match[2] if match[2] is not None else match[3])
    start = offset_of(given)
    found = list(rows.order_by("-pk")[start : start + most + 1])
    body: dict[str, Any] = {"experiments": [wire.experiment(study) for study in found[:most]]}
    if len(found) > most:
        body["next_page_token"] = token_of(start + most)
    return answer(body)


@endpoint("POST")
def change(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Renaming, deleting, restoring and tagging of a study are refused: pages and the API of the product do that."""
    by_id(request, text_of(given, "experiment_id"))
    text = "experiments: a study is renamed, described and hidden on its own pages, expected no such request here"
    raise MlflowError("NOT_IMPLEMENTED", text)
