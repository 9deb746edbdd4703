"""Sources over the API: listed, read, taken in, checked, compared, and their bytes."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from evidence.actions import sources as actions
from evidence.api import sources_serializers as bodies
from evidence.models import Source, SourceCheck, SourceVersion
from evidence.presenters.source_difference import compare
from runs.access import EVIDENCE_WRITE, get_visible, require, visible
from runs.api.base import ApiView, DetailView, Filter, ListView, PostView, check_parameters, sparse
from runs.api.downloads import send_blob
from runs.api.parsing import StrictJSONParser, check_shape
from runs.api.problems import invalid
from runs.api.studies import get_study

FILE = "file"


class UploadParser(MultiPartParser):
    """``multipart/form-data`` as the JSON body would be: the part ``file`` becomes ``data_base64``."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Members of the body. Raises a problem for a second file, a repeated member or too many bytes."""
        found = super().parse(stream, media_type, parser_context)
        values: dict[str, Any] = {}
        for name, items in found.data.lists():
            if len(items) != 1:
                raise invalid(name, f"{len(items)} values", "one", 400)
            values[name] = items[0]
        check_shape(values)
        files = [(name, item) for name, items in found.files.lists() for item in items]
        if len(files) > 1 or any(name != FILE for name, _ in files) or (files and "data_base64" in values):
            raise invalid(FILE, ", ".join(name for name, _ in files)[:200], f"one part with the name {FILE}", 400)
        for _name, item in files:
            if (item.size or 0) > settings.SOURCE_LIMIT:
                raise invalid(FILE, f"{item.size} bytes", f"at most {settings.SOURCE_LIMIT} bytes", 413)
            values["data_base64"] = base64.b64encode(item.read()).decode()
        return values


def source_rows() -> QuerySet[Source]:
    """Sources with what their representation reads."""
    return Source.objects.select_related("study", "current__actor")


def _bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid("data_base64", text[:80], "base64 (RFC 4648) of the bytes") from error


def _version(source: Source, number: int) -> SourceVersion:
    found = SourceVersion.objects.select_related("actor", "study").filter(source=source, number=number).first()
    if found is None:
        raise Http404(f"version: got {number}, which this source does not have")
    found.source = source
    return found


class Sources(ListView):
    """Sources of visible studies."""

    tag, summary, serializer = "evidence", "List sources", bodies.SourceSerializer
    filters = (
        Filter("study", "study__slug"),
        Filter("state", "state", choices=Source.STATES),
        Filter("origin", "origin", choices=Source.ORIGINS),
        Filter("form", "form", choices=Source.FORMS),
        Filter("reference", "reference"),
        Filter("path", "path"),
        Filter("sha256", "current__sha256"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, source_rows(), "study")


class OfSource(ApiView):
    """Anything of one visible source."""

    tag = "evidence"

    def source(self, **kwargs: Any) -> Source:
        """The source, or ``Http404``."""
        return get_visible(self.principal, source_rows(), "study", uid=kwargs["uid"])


class OneSource(OfSource, DetailView):
    """One source."""

    summary, serializer = "Read a source", bodies.SourceSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return self.source(**kwargs)


class CreateSource(PostView):
    """Take bytes, or only their recorded hash, into a study."""

    tag, summary, serializer, status_code = "evidence", "Take in a source", bodies.SourceSerializer, 201
    body, also = bodies.NewSourceBody, (200,)  # 200: these bytes are the newest version already
    parser_classes = [StrictJSONParser, UploadParser]

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, get_study(self, kwargs["slug"]))

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), get_study(self, kwargs["slug"])
        data, path = _bytes(given.pop("data_base64")), given.pop("path")
        before = SourceVersion.objects.filter(source__study=study).count()
        version = actions.add_source(
            study, path, data, origin=Source.UPLOAD, by=self.actor(), at=timezone.now(), **given
        )
        added = SourceVersion.objects.filter(source__study=study).count() > before
        return Response(
            sparse(request, bodies.SourceSerializer, [source_rows().get(pk=version.source_id)])[0],
            status=201 if added else 200,
            headers={"Location": f"/api/v1/sources/{version.source.uid}"},
        )


class Versions(OfSource, ListView):
    """Versions of a source, newest first; none is ever replaced."""

    summary, serializer = "List versions of a source", bodies.SourceVersionSerializer

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return SourceVersion.objects.filter(source=self.source(**kwargs)).select_related("actor")


class VersionBytes(OfSource):
    """The bytes of a version, as an attachment, with a single Range."""

    summary, is_download = "Read the bytes of a version", True

    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """The bytes. 404 where they are not held."""
        version = _version(self.source(**kwargs), kwargs["number"])
        if not version.held:
            raise Http404(f"bytes: got only the hash {version.sha256}, the bytes of this version are not held here")
        return send_blob(request, version.sha256, f"{version.sha256[:16]}.bin", "application/octet-stream")


class Check(OfSource, PostView):
    """Hash a version's bytes again."""

    summary, serializer, body = "Check a source", bodies.CheckedSerializer, bodies.CheckBody

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, self.source(**kwargs).study)

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, source = self.read_body(request), self.source(**kwargs)
        number = given["version"] or (source.current.number if source.current else 1)
        version = _version(source, number)
        state = actions.check_version(version, by=self.actor(), at=timezone.now())
        last = SourceCheck.objects.filter(version=version).order_by("-pk").first()
        body = {
            "version": version.number,
            "state": state,
            "found_sha256": last.found_sha256 if last else version.sha256 if version.held else "",
            "note": last.note if last else "",
            "source": source_rows().get(pk=source.pk),
        }
        return Response(bodies.CheckedSerializer(body).data)


class Difference(OfSource):
    """What differs between two versions."""

    summary, serializer = "Compare two versions of a source", bodies.DifferenceSerializer
    parameters = (
        Filter("before", "", "integer", help="number of a version"),
        Filter("after", "", "integer", help="number of a version"),
    )

    def get(self, request: Request, **kwargs: Any) -> Response:
        """Values by pointer where both are JSON, and lines."""
        check_parameters(request, ("before", "after"))
        numbers = []
        for item in self.parameters:
            if item.name not in request.query_params:
                raise invalid(item.name, "nothing", "the number of a version", 400)
            numbers.append(item.value(request.query_params[item.name]))
        source = self.source(**kwargs)
        found = compare(_version(source, numbers[0]), _version(source, numbers[1]))
        return Response(bodies.DifferenceSerializer(found).data)
