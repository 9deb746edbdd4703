"""Claims and links over the API: by the same actions and rules as the pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from evidence.actions import claims as action
from evidence.actions.links import add_link, withdraw_link
from evidence.api import claims_serializers as bodies
from evidence.api.figures import plan_version_of
from evidence.models import Claim, ClaimVersion, Excerpt, Figure, Link
from evidence.status import derive
from runs.access import EVIDENCE_WRITE, READ, get_visible, require, visible
from runs.api.base import DetailView, Filter, ListView, PostView, check_parameters, sparse
from runs.api.problems import ApiProblem, fault, invalid
from runs.api.studies import get_study
from runs.models import Study


def claim_rows() -> QuerySet[Claim]:
    """Claims with what their representation reads."""
    rows = Claim.objects.filter(current__isnull=False)
    return rows.select_related("study", "author", "current__plan_version", "current__actor").defer(
        "current__plan_version__bytes", "current__plan_version__strict_pairs"
    )


def link_rows() -> QuerySet[Link]:
    """Links with what their representation reads, by a query each: joined, SQLite sorts a hundred thousand of them."""
    return Link.objects.prefetch_related(
        "study", "claim", "claim_version", "excerpt", "figure", "actor", "withdrawal"
    )  # fmt: skip


class Claims(ListView):
    """Claims of visible studies."""

    tag, summary, serializer = "evidence", "List claims", bodies.ClaimSerializer
    filters = (
        Filter("study", "study__slug"),
        Filter("key", "key"),
        Filter("status", "status", choices=Claim.STATUSES),
        Filter("kind", "current__kind", choices=ClaimVersion.KINDS),
        Filter("stale", "stale", "boolean"),
        Filter("disputed", "disputed", "boolean"),
        Filter("provisional", "provisional", "boolean"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, claim_rows(), "study")


class OneClaim(DetailView):
    """One claim with its caps, figures and versions."""

    tag, summary, serializer = "evidence", "Read a claim", bodies.ClaimDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, claim_rows(), "study", uid=kwargs["uid"])

    def get(self, request: Request, **kwargs: Any) -> Response:
        """The claim; its ETag is the number of the version that stands."""
        check_parameters(request, ("fields",))
        return _claim(request, self.find(request, **kwargs))


class ClaimStatus(DetailView):
    """The status as it derives now."""

    tag, summary, serializer = "evidence", "Read a claim's status and its reasons", bodies.StatusSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return derive(get_visible(self.principal, claim_rows(), "study", uid=kwargs["uid"]))


def _write(view: PostView, study: Study, key: str, given: dict[str, Any]) -> ClaimVersion:
    """``add_claim`` from a body; every fault of the words becomes an entry of the problem."""
    given["plan_version"] = plan_version_of(study, given["plan_version"])
    try:
        return action.add_claim(study, key, by=view.actor(), at=timezone.now(), **given)
    except action.ClaimRefused as error:
        found = [fault(item.field, item.got or "nothing", item.message) for item in error.faults]
        raise ApiProblem(422, str(error), errors=found) from error


class CreateClaim(PostView):
    """Write a claim."""

    tag, summary, serializer, status_code = "evidence", "Write a claim", bodies.ClaimDetail, 201
    body = bodies.NewClaimBody

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, get_study(self, kwargs["slug"]))

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), get_study(self, kwargs["slug"])
        key = given.pop("key")
        if Claim.objects.filter(study=study, key=key).exists():
            raise invalid("key", key, "a key that no claim of this study has; revise that claim instead", 409)
        version = _write(self, study, key, given)
        row = claim_rows().get(pk=version.claim_id)
        where = {"Location": f"/api/v1/claims/{row.uid}"}
        return Response(sparse(request, bodies.ClaimDetail, [row])[0], status=201, headers=where)


class CheckClaim(PostView):
    """What a sentence may not say; writes nothing."""

    tag, summary, serializer, body = "evidence", "Check a sentence", bodies.CheckedSerializer, bodies.CheckBody

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, READ, get_study(self, kwargs["slug"]))

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), get_study(self, kwargs["slug"])
        words = {f"text_{given['language']}": given["text"]}
        version = plan_version_of(study, given["plan_version"])
        found = action.check_claim(study, words, given["kind"], version, given["endpoint"])
        return Response(bodies.CheckedSerializer({"troubles": found}).data)


class OfClaim(PostView):
    """A change of one claim."""

    tag, serializer = "evidence", bodies.ClaimDetail

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, self.claim(**kwargs).study)

    def claim(self, **kwargs: Any) -> Claim:
        """The visible claim."""
        return get_visible(self.principal, claim_rows(), "study", uid=kwargs["uid"])

    def told(self, request: Request, claim: Claim) -> Response:
        """The claim after the change."""
        return _claim(request, claim_rows().get(pk=claim.pk))


def _claim(request: Request, row: Claim) -> Response:
    found = Response(sparse(request, bodies.ClaimDetail, [row])[0])
    if row.current is not None:
        found["ETag"] = f'"{row.current.number}"'
    return found


MATCH = 'the ETag of the claim that was read, as "1"; 412 where another version stands by now, and nothing is changed'


@contextmanager
def _matched(request: Request, given: int | None = None) -> Iterator[int | None]:
    """The version that the writer saw (``_base``). One that stands no more, named by If-Match, is answered 412."""
    base = _base(request, given)
    try:
        yield base
    except action.ClaimMoved as error:
        header = request.headers.get("If-Match")
        if header is None:
            raise
        stands = f'"{error.number}"'
        raise ApiProblem(
            412, str(error).replace("base: ", "If-Match: ", 1), errors=[fault("If-Match", header, stands)],
            headers={"ETag": stands},
        ) from error  # fmt: skip


def _base(request: Request, given: int | None) -> int | None:
    """The version that the writer saw: of ``base`` or of ``If-Match: "N"``, which must not differ."""
    header = request.headers.get("If-Match")
    if header is None:
        return given
    text = header.strip().removeprefix('"').removesuffix('"')
    if not (text.isascii() and text.isdigit() and len(text) <= 9) or int(text) < 1:
        raise invalid("If-Match", header, 'the number of the version that was read, as "1"')
    if given is not None and given != int(text):
        raise invalid("If-Match", header, f"the same as base, {given}")
    return int(text)


class ReviseClaim(OfClaim):
    """The next version of a claim's words; the same words change nothing.

    ``base`` or If-Match names the version that the writer saw. 409 (412 for If-Match): another one stands by now; what
    changed is told.
    """

    match, problems = MATCH, (412,)
    summary, body = "Revise a claim", bodies.ReviseBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, claim = self.read_body(request), self.claim(**kwargs)
        with _matched(request, given["base"]) as given["base"]:
            _write(self, claim.study, claim.key, given)
        return self.told(request, claim)


class LowerClaim(OfClaim):
    """Set the status by hand, at or below its cap."""

    match, problems = MATCH, (412,)
    summary, body = "Lower a claim", bodies.LowerBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, claim = self.read_body(request), self.claim(**kwargs)
        with _matched(request) as base:
            action.lower_claim(
                claim, given["status"], reason=given["reason"], by=self.actor(), at=timezone.now(), base=base
            )
        return self.told(request, claim)


class WithdrawClaim(OfClaim):
    """Take a claim back for good."""

    match, problems = MATCH, (412,)
    summary, body = "Withdraw a claim", bodies.ReasonBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, claim = self.read_body(request), self.claim(**kwargs)
        with _matched(request) as base:
            action.withdraw_claim(claim, reason=given["reason"], by=self.actor(), at=timezone.now(), base=base)
        return self.told(request, claim)


class Links(ListView):
    """Links of visible studies."""

    tag, summary, serializer = "evidence", "List links", bodies.LinkSerializer
    filters = (
        Filter("study", "study__slug"),
        Filter("claim", "claim__uid", "uuid"),
        Filter("relation", "relation", choices=Link.RELATIONS),
        Filter("excerpt", "excerpt__key"),
        Filter("figure", "figure__key"),
    )
    extra = ("withdrawn",)
    parameters = (Filter("withdrawn", "", "boolean", help="true: only those taken back; false: only those that stand"),)

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        rows = visible(self.principal, link_rows(), "study")
        text = request.query_params.get("withdrawn")
        if text is None:
            return rows
        return rows.filter(withdrawal__isnull=not self.parameters[0].value(text))


class OneLink(DetailView):
    """One link."""

    tag, summary, serializer = "evidence", "Read a link", bodies.LinkSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, link_rows(), "study", uid=kwargs["uid"])


class CreateLink(OfClaim):
    """Link an excerpt or a figure to a claim."""

    summary, serializer, body, status_code = (
        "Link evidence", bodies.LinkSerializer, bodies.NewLinkBody, 201,
    )  # fmt: skip

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, claim = self.read_body(request), self.claim(**kwargs)
        row = add_link(
            claim, excerpt=_named(Excerpt, claim, "excerpt", given.pop("excerpt")),
            figure=_named(Figure, claim, "figure", given.pop("figure")), by=self.actor(), at=timezone.now(), **given,
        )  # fmt: skip
        where = {"Location": f"/api/v1/links/{row.uid}"}
        found = sparse(request, bodies.LinkSerializer, [link_rows().get(pk=row.pk)])[0]
        return Response(found, status=201, headers=where)


def _named(model: Any, claim: Claim, field: str, key: str | None) -> Any:
    """The excerpt or figure of that key. Raises a problem that names the member."""
    if key is None:
        return None
    path = "version__source" if model is Excerpt else "current"
    found = model.objects.filter(study=claim.study_id, key=key).select_related(path).first()
    if found is None:
        raise invalid(field, key, f"the key of one of study {claim.study.slug}")
    return found


class WithdrawLink(PostView):
    """Take a link back."""

    tag, summary, serializer, body = "evidence", "Withdraw a link", bodies.LinkSerializer, bodies.ReasonBody

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, self.link(**kwargs).study)

    def link(self, **kwargs: Any) -> Link:
        """The visible link."""
        return get_visible(self.principal, link_rows(), "study", uid=kwargs["uid"])

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, link = self.read_body(request), self.link(**kwargs)
        withdraw_link(link, reason=given["reason"], by=self.actor(), at=timezone.now())
        return Response(sparse(request, bodies.LinkSerializer, [link_rows().get(pk=link.pk)])[0])
