"""What leaves the house over the API: bundles, signed heads, the public key; and the journal."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from evidence.actions.journal import NOTE_MOST, add_note, draft_day
from evidence.actions.signing import exported
from evidence.models import JournalDay, JournalNote, SignedHead
from evidence.outward.download import BUNDLE, CRATE, SITE, build, require_export, sees_every_stream
from evidence.outward.keys import fingerprint, public_pem, signing_key
from evidence.views.journal import may_note, read_day
from runs.access import AUDIT_READ, EVIDENCE_WRITE, require, roles_in
from runs.api.base import ApiView, DetailView, Filter, ListView, PostView, check_parameters, sparse
from runs.api.problems import ApiProblem, invalid
from runs.api.serializers import StrictText
from runs.api.studies import get_study
from runs.errors import DomainError, NotAllowed
from runs.models import Membership, Study
from workbench.contracts.errors import ContractError


class KeySerializer(s.Serializer[Any]):
    """The public key of this home. Compare the fingerprint with one that you have from elsewhere."""

    fingerprint = s.CharField(help_text="SHA-256 of the raw public key")
    public_key = s.CharField(help_text="Ed25519, PEM")


class SigningKey(DetailView):
    """The key that signs heads and bundles."""

    tag, summary, serializer = "exports", "Read the public key", KeySerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        public = signing_key(settings.HOME).public_key()
        return {"fingerprint": fingerprint(public), "public_key": public_pem(public)}


class HeadSerializer(s.Serializer[Any]):
    """A signed head; ``export`` is the file that ``heads check`` reads."""

    anchor = s.IntegerField(source="anchor.seq")
    anchor_sha256 = s.CharField(source="anchor.sha256")
    fingerprint = s.CharField()
    at = s.DateTimeField()
    time_stamps = s.SerializerMethodField(help_text="how many RFC 3161 stamps it has")
    export = s.SerializerMethodField(help_text="what to keep elsewhere, as `manage.py heads export` writes it")

    def get_time_stamps(self, row: SignedHead) -> int:
        """Count."""
        return len(row.time_stamps.all())

    def get_export(self, row: SignedHead) -> dict[str, Any]:
        """The exported file."""
        return exported(row)


class Heads(ListView):
    """Signed heads, newest first: for auditors who see every stream of the site, since heads count all of them."""

    tag, summary, serializer = "exports", "List signed heads", HeadSerializer

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        if self.principal.user is None:
            self.actor()  # 401
        if not (self._audits() and sees_every_stream(self.principal)):
            raise NotAllowed(
                "heads: got a reader who audits no study, or from whom streams are hidden, expected a site admin, or "
                "an auditor who sees every stream that a head counts"
            )
        return SignedHead.objects.select_related("anchor").prefetch_related("time_stamps")

    def _audits(self) -> bool:
        if self.principal.is_site_admin:
            return True
        for membership in Membership.objects.filter(user=self.principal.user).select_related("study"):
            try:
                require(self.principal, AUDIT_READ, membership.study, roles_in(self.principal, membership.study))
                return True
            except (NotAllowed, Http404):
                continue
        return False


class Export(ApiView):
    """A study as a bundle, a crate or a site, built now; raw trajectories are never in it."""

    tag, summary = "exports", "Download an export of a study"
    is_download, media_type, problems = True, "application/zip", (409, 413, 422)
    form = ""

    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """The bytes; ``ETag`` is their hash, the same while the study is the same."""
        check_parameters(request, ())
        study = get_study(self, kwargs["slug"])
        self.actor()
        require_export(self.principal, study, self.form)
        try:
            made = build(study, self.form)
        except ContractError as error:
            raise ApiProblem(413, str(error)) from error
        tag = f'"{made.sha256}"'
        if tag in request.headers.get("If-None-Match", ""):
            made.file.close()
            return HttpResponse(status=304, headers={"ETag": tag})
        response = FileResponse(made.file, as_attachment=True, filename=made.name, content_type=self.media_type)
        response["Content-Length"] = str(made.size)
        response["ETag"], response["X-Data-SHA256"] = tag, made.sha256
        response["X-Content-Type-Options"] = "nosniff"
        return response


class ExportBundle(Export):
    """A study as one file that proves itself offline."""

    summary, form = "Download a study's bundle", BUNDLE


class ExportCrate(Export):
    """A study as an RO-Crate with PROV, zipped."""

    summary, form = "Download a study's RO-Crate", CRATE


class ExportSite(Export):
    """A study as pages that open from disk, zipped."""

    summary, form = "Download a study's site", SITE


class LineSerializer(s.Serializer[Any]):
    """A line of a day. ``values``: what each place of its texts says, read from the receipt; null: nothing there."""

    kind = s.CharField()
    told = s.CharField(help_text="kind of the receipt")
    text_en = s.CharField()
    text_zh = s.CharField()
    receipt = s.CharField(help_text="SHA-256 of the receipt")
    stream = s.CharField()
    seq = s.IntegerField()
    values = s.DictField(child=s.CharField(allow_null=True))


class DaySerializer(s.Serializer[Any]):
    """One draft of a day; the highest number of a day counts."""

    uid = s.UUIDField()
    study = s.CharField(source="study.slug")
    day = s.DateField()
    number = s.IntegerField()
    at = s.DateTimeField()
    by = s.CharField(source="actor.name")
    lines = LineSerializer(many=True)
    upto = s.DictField(child=s.IntegerField())


class NoteSerializer(s.Serializer[Any]):
    """A person's note on a day."""

    uid = s.UUIDField()
    study = s.CharField(source="study.slug")
    day = s.DateField()
    text = s.CharField()
    language = s.CharField()
    at = s.DateTimeField()
    by = s.CharField(source="actor.name")


class DayBody(s.Serializer[Any]):
    """The day to draft, in UTC."""

    day = s.DateField()


class NoteBody(s.Serializer[Any]):
    """A note. A number stands as ``[[figure.key]]``."""

    day = s.DateField()
    text = StrictText(max_length=NOTE_MOST)
    language = s.ChoiceField(choices=("en", "zh"))


class Day(Filter):
    """A day such as 2026-11-30."""

    def value(self, text: str) -> Any:
        """The day. Raises a problem that names it."""
        try:
            return read_day(super().value(text))
        except DomainError as error:
            raise invalid(self.name, text, "a day such as 2026-11-30", 400) from error


def day_rows(study: Study) -> QuerySet[JournalDay]:
    """Drafts with what their representation reads."""
    return JournalDay.objects.filter(study=study).select_related("study", "actor")


class JournalDays(ListView, PostView):
    """Drafts of a study's days; a POST drafts one."""

    tag, serializer, body, status_code = "journal", DaySerializer, DayBody, 201
    summary, post_summary = "List drafts of days", "Draft a day from receipts"
    filters = (Filter("number", "number", "integer"), Day("day", "day", help="2026-11-30"))

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return day_rows(get_study(self, kwargs["slug"]))

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, get_study(self, kwargs["slug"]))

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), get_study(self, kwargs["slug"])
        row = draft_day(study, given["day"], by=self.actor(), at=timezone.now())
        return Response(sparse(request, DaySerializer, [row])[0], status=201)


class JournalNotes(ListView, PostView):
    """Notes of people; a POST adds one."""

    tag, serializer, body, status_code = "journal", NoteSerializer, NoteBody, 201
    summary, post_summary = "List notes of the journal", "Add a note to a day"
    filters = (Filter("language", "language", choices=("en", "zh")), Day("day", "day", help="2026-11-30"))

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        study = get_study(self, kwargs["slug"])
        return JournalNote.objects.filter(study=study).select_related("study", "actor")

    def allow(self, **kwargs: Any) -> None:
        study = get_study(self, kwargs["slug"])
        if not may_note(self.principal, study):
            require(self.principal, EVIDENCE_WRITE, study)

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), get_study(self, kwargs["slug"])
        row = add_note(study, given["day"], given["text"], given["language"], by=self.actor(), at=timezone.now())
        return Response(sparse(request, NoteSerializer, [row])[0], status=201)
