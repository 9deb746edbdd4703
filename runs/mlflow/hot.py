"""The run of a log request, by one statement: its head as it is now, locked, with the caller's roles in its study.

A trainer comes here with every step. What never changes (the run, which study it is in) is remembered;
what may change (status, mark of deletion, attempt, name, visibility, roles) is read each time.
"""

from __future__ import annotations

import copy

from django.db import connection
from django.http import Http404, HttpRequest

from runs.access import LOG_WRITE, principal_of, require
from runs.actions.audit import note
from runs.mlflow.errors import MlflowError
from runs.models import TrackedRun

KEPT = 2000
_HEAD = (
    "SELECT h.id, h.run_id, h.study_id, h.segment, h.landed, h.deleted, h.name, s.visibility, m.role"
    " FROM runs_trackedrun h JOIN runs_study s ON s.id = h.study_id"
    " LEFT JOIN runs_membership m ON m.study_id = s.id AND m.user_id = %s WHERE h.external_id = %s"
)
_kept: dict[tuple[str, str], TrackedRun] = {}


def _remembered(external: str, key: int) -> TrackedRun:
    """The run with its study, as an object of this request's own."""
    name = (str(connection.settings_dict["NAME"]), external)
    found = _kept.get(name)
    if found is None or found.pk != key:
        found = TrackedRun.objects.select_related("run", "study").get(pk=key)
        if len(_kept) >= KEPT:
            _kept.clear()
        _kept[name] = found
    own = copy.copy(found)
    own.study = copy.copy(found.study)
    return own


def head_to_log(request: HttpRequest, external: str) -> TrackedRun:
    """The run's locked head, where the caller may log into it. Call in a transaction.

    Of the head only segment, landed, deleted and name are as they are now. Raises ``MlflowError`` for a
    run that is absent or hidden, ``NotAllowed`` where the right is missing.
    """
    principal = principal_of(request)
    assert principal.user is not None
    statement = _HEAD + (" FOR UPDATE OF h" if connection.vendor == "postgresql" else "")
    with connection.cursor() as cursor:
        cursor.execute(statement, [principal.user.pk, external])
        rows = cursor.fetchall()
    if not rows:
        raise no_run(external)
    key, _, _, segment, landed, deleted, name, visibility, _ = rows[0]
    head = _remembered(external, key)
    head.segment, head.landed, head.deleted, head.name = segment, landed, bool(deleted), name
    head.study.visibility = visibility
    note(study=head.study, subject=f"run {external}")
    try:
        require(principal, LOG_WRITE, head.study, [row[8] for row in rows if row[8] is not None])
    except Http404 as error:
        raise no_run(external) from error
    return head


def no_run(external: str) -> MlflowError:
    """A run that is absent, or hidden from the caller: both sound alike."""
    return MlflowError("RESOURCE_DOES_NOT_EXIST", f"Run with id={external[:64]} not found")
