"""Notes over the API: read, listed, checked and saved by the same actions as on the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from evidence.actions.notes import accept_contract, check_document, save_notes
from evidence.api import notes_serializers as bodies
from evidence.models import AcceptanceContract, NotesVersion
from evidence.notes import read
from evidence.notes.schema import Fault, NotesInvalid
from runs.access import EVIDENCE_WRITE, require
from runs.api.base import DetailView, ListView, PostView, sparse
from runs.api.problems import ApiProblem, fault
from runs.api.studies import get_study
from runs.errors import StaleTransition
from runs.models import Study


def _entries(faults: list[Fault]) -> list[dict[str, str]]:
    return [fault(item.path, item.got, item.expected) for item in faults]


class OfNotes(PostView):
    """A change of a study's notes."""

    tag = "notes"

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, self.study(**kwargs))

    def study(self, **kwargs: Any) -> Study:
        """The visible study."""
        return get_study(self, kwargs["slug"])

    def save(self, request: Request, study: Study) -> NotesVersion:
        """Save the body's document. Raises a problem with every fault, 409 where another version came first."""
        given = self.read_body(request)
        try:
            return save_notes(
                study, given["document"], by=self.actor(), at=timezone.now(), reason=given["reason"],
                base=given["base"],
            )  # fmt: skip
        except NotesInvalid as error:
            raise ApiProblem(422, str(error), errors=_entries(error.faults)) from error
        except StaleTransition as error:
            raise ApiProblem(409, str(error)) from error


class CurrentNotes(DetailView, OfNotes):
    """The newest version of a study's notes; PUT saves the next one."""

    serializer, put_body, put_serializer = bodies.NotesDetail, bodies.NotesBody, bodies.NotesSerializer
    takes_match = False  # the body's ``base`` says which version was read
    summary, put_summary = "Read a study's notes", "Save the next version of the notes"
    http_method_names = ["get", "put", "head", "options"]

    def find(self, request: Request, **kwargs: Any) -> Any:
        found = read.current(self.study(**kwargs))
        if found is None:
            raise Http404("no notes have been written")
        return found

    def put(self, request: Request, **kwargs: Any) -> Response:
        """Save; a document equal to the newest one answers with that one."""
        self.actor()
        self.allow(**kwargs)
        self.body = bodies.NotesBody
        return Response(sparse(request, bodies.NotesSerializer, [self.save(request, self.study(**kwargs))])[0])


class NotesVersions(ListView, OfNotes):
    """Versions of a study's notes; POST saves the next one, once for each Idempotency-Key."""

    serializer, body, status_code = bodies.NotesSerializer, bodies.NotesBody, 201
    summary, post_summary = "List the versions of a study's notes", "Save the next version of the notes"

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return NotesVersion.objects.filter(study=self.study(**kwargs)).select_related("study", "actor")

    def change(self, request: Request, **kwargs: Any) -> Response:
        study = self.study(**kwargs)
        made = self.save(request, study)
        return Response(
            sparse(request, bodies.NotesSerializer, [made])[0],
            status=201,
            headers={"Location": f"/api/v1/studies/{study.slug}/notes/versions/{made.number}"},
        )


class OneVersion(DetailView):
    """One version with its document."""

    tag, summary, serializer = "notes", "Read a version of a study's notes", bodies.NotesDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        found = read.version(get_study(self, kwargs["slug"]), kwargs["number"])
        if found is None:
            raise Http404("no such version of the notes")
        return found


class CheckNotes(OfNotes):
    """Every fault of a document: its form, what it names and what its texts may not say."""

    summary, serializer, body = "Check a notes document", bodies.CheckedNotes, bodies.CheckBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        document = self.read_body(request)["document"]
        try:
            found = check_document(self.study(**kwargs), document)[1]
        except NotesInvalid as error:
            found = error.faults
        return Response({"valid": not found, "problems": _entries(found)})


class Contracts(ListView, OfNotes):
    """Acceptance contracts of a study; POST records one."""

    serializer, body, status_code = bodies.ContractSerializer, bodies.ContractBody, 201
    summary, post_summary = "List the acceptance contracts of a study", "Record an acceptance contract"

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return AcceptanceContract.objects.filter(study=self.study(**kwargs)).select_related("actor")

    def change(self, request: Request, **kwargs: Any) -> Response:
        given = self.read_body(request)
        made = accept_contract(self.study(**kwargs), by=self.actor(), at=timezone.now(), **given)
        return Response(sparse(request, bodies.ContractSerializer, [made])[0], status=201)
