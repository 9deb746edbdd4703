"""Studies and plans: draft, validate, compare, inspect, preview, freeze, supersede, start."""

from __future__ import annotations

import contextlib
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import PLAN_FREEZE, PLAN_WRITE, READ, RUN_CONTROL, get_visible, require, visible
from runs.actions import inspection
from runs.actions.drafts import Checked, DraftExists, StaleDraft, check_draft, create_draft, update_draft
from runs.actions.execution import start_execution
from runs.actions.plans import parse_plan_text, plan_body, supersede_plan
from runs.actions.provenance import provenance
from runs.api.base import ApiView, Filter, ListView, PostView, check_parameters, sparse
from runs.api.downloads import send_bytes
from runs.api.problems import ApiProblem, fault, invalid
from runs.api.serializers import ExecutionSerializer, JobSerializer, PlanSerializer, ProblemEntry, StrictText
from runs.api.studies import get_study
from runs.errors import AlreadyFrozen, NothingToRun
from runs.models import Plan, PlanVersion
from workbench.contracts.canonical import canonical_bytes, encode_float, sha256_hex
from workbench.contracts.errors import PlanInvalid
from workbench.contracts.spec import complete_plan

MAX_REASON = 2000


class DraftBody(s.Serializer[Any]):
    """A plan document as YAML or JSON text."""

    text = StrictText(trim_whitespace=False, max_length=1_000_000, help_text="YAML or JSON")


class NewDraftBody(DraftBody):
    """A new draft: its name and its document."""

    slug = StrictText(max_length=100)

    def get_fields(self) -> dict[str, Any]:
        """Name first."""
        fields = super().get_fields()
        return {"slug": fields["slug"], "text": fields["text"]}


class ReasonBody(s.Serializer[Any]):
    """Why."""

    reason = StrictText(min_length=1, max_length=MAX_REASON)


class CheckedSerializer(s.Serializer[Any]):
    """What keeps a document from being frozen; an empty list: nothing that a document alone can tell."""

    valid = s.BooleanField()
    problems = ProblemEntry(many=True)


class PreviewSerializer(s.Serializer[Any]):
    """What a freeze would store."""

    sha256 = s.CharField()
    bytes = s.IntegerField()
    body = s.JSONField()


class DifferenceSerializer(s.Serializer[Any]):
    """Members of two plan documents, defaults filled in, that are not equal."""

    against = s.CharField()
    equal = s.BooleanField()
    differences = s.ListField(child=s.JSONField())


def rows_of_plans() -> QuerySet[Plan]:
    """Plans with what their representation reads."""
    rows = Plan.objects.select_related("study", "current_version__execution")
    return rows.defer("current_version__bytes", "current_version__strict_pairs")


class PlanView(PostView):
    """Anything below one plan. ``right``: what a POST needs in its study."""

    tag = "plans"
    right = READ

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, self.right, self.plan(kwargs["uid"]).study)

    def plan(self, uid: UUID) -> Plan:
        """The visible plan."""
        return get_visible(self.principal, rows_of_plans(), uid=uid)


class Plans(ListView):
    """Plans of all visible studies."""

    tag, summary, serializer = "plans", "List plans", PlanSerializer
    filters = (
        Filter("study", "study__slug"),
        Filter("state", "state", choices=("draft", "frozen", "superseded")),
        Filter("slug", "slug"),
        Filter("sha256", "current_version__sha256__startswith", help="a prefix"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, rows_of_plans())


class CreatePlan(PostView):
    """A new draft in a study."""

    tag, summary, serializer, body, status_code = "plans", "Create a draft", PlanSerializer, NewDraftBody, 201

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, PLAN_WRITE, get_study(self, kwargs["slug"]))

    def change(self, request: Request, **kwargs: Any) -> Response:
        study = get_study(self, kwargs["slug"])
        given = self.read_body(request)
        try:
            plan = create_draft(study, given["slug"], given["text"], by=self.actor(), at=timezone.now())
        except DraftExists as error:
            raise invalid("slug", given["slug"], f"a name that no plan of study {study.slug} has", 409) from error
        return _draft(request, plan, 201)


def _draft(request: Request, plan: Plan, code: int = 200) -> Response:
    row = rows_of_plans().get(pk=plan.pk)
    response = Response(sparse(request, PlanSerializer, [row])[0], status=code)
    response["ETag"] = etag_of(row)
    if code == 201:
        response["Location"] = f"/api/v1/plans/{row.uid}"
    return response


def etag_of(plan: Plan) -> str:
    """Entity tag: state and revision of the draft."""
    return f'"{plan.state}-{plan.draft_revision}"'


def _stale(given: str, plan: Plan) -> ApiProblem:
    expected = etag_of(plan)
    return ApiProblem(
        412,
        f"If-Match: got {given[:80]}, expected {expected}: another writer saved first",
        errors=[fault("If-Match", given, expected)],
        headers={"ETag": expected},
    )


class OnePlan(PlanView):
    """Read a plan; save its draft with If-Match."""

    summary, serializer, body = "Read a plan", PlanSerializer, None
    put_body = DraftBody
    put_summary = patch_summary = "Save a draft (If-Match: the ETag that was read)"
    http_method_names = ["get", "put", "patch", "head", "options"]

    def get(self, request: Request, **kwargs: Any) -> Response:
        """The plan, with its ETag."""
        check_parameters(request, ("fields",))
        return _draft(request, self.plan(kwargs["uid"]))

    def put(self, request: Request, **kwargs: Any) -> Response:
        """Save the draft over the revision that was read."""
        by = self.actor()
        plan = self.plan(kwargs["uid"])
        require(self.principal, PLAN_WRITE, plan.study)
        given = request.headers.get("If-Match")
        if given is None:
            raise ApiProblem(
                428, "If-Match: got none, expected the ETag that was read", errors=[fault("If-Match", "", "an ETag")]
            )
        if plan.state != "draft":
            raise AlreadyFrozen(
                f"plan {plan.slug}: it is {plan.state}; its bytes never change. Save under another name."
            )
        if given.strip() != etag_of(plan):
            raise _stale(given, plan)
        self.body = DraftBody
        text = self.read_body(request)["text"]
        try:
            saved = update_draft(plan, text, revision=plan.draft_revision, by=by, at=timezone.now())
        except StaleDraft as error:
            raise _stale(given, error.plan) from error
        return _draft(request, saved)

    def patch(self, request: Request, **kwargs: Any) -> Response:
        """The same: a draft has one member that can be changed."""
        return self.put(request, **kwargs)


class Validate(PlanView):
    """Every fault of a document, saved nowhere."""

    summary, serializer, body = "Check a document against a plan's place", CheckedSerializer, DraftBody
    checked: Checked

    def prepare(self, request: Request, **kwargs: Any) -> None:
        plan = self.plan(kwargs["uid"])
        self.checked = check_draft(plan.study.slug, plan.slug, self.read_body(request)["text"])

    def change(self, request: Request, **kwargs: Any) -> Response:
        problems = [fault(item.field, item.got, item.expected) for item in self.checked.problems]
        return Response({"valid": not problems, "problems": problems})


class Difference(PlanView):
    """Against another plan (uid) or frozen version (hash or its prefix)."""

    summary, serializer = "Compare with another plan", DifferenceSerializer
    http_method_names = ["get", "head", "options"]
    parameters = (Filter("against", "", help="uid of a plan, or hash of a frozen version"),)

    def get(self, request: Request, **kwargs: Any) -> Response:
        """Differing members as [path, value here, value there]; null where it is absent."""
        check_parameters(request, ("against",))
        against = request.query_params.get("against", "")
        here, there = _document(self.plan(kwargs["uid"])), self._other(against)
        rows = sorted(set(here) | set(there))
        differing = [[path, here.get(path), there.get(path)] for path in rows if here.get(path) != there.get(path)]
        return Response({"against": against, "equal": not differing, "differences": differing})

    def _other(self, text: str) -> dict[str, Any]:
        try:
            return _document(get_visible(self.principal, rows_of_plans(), uid=UUID(text)))
        except ValueError:
            pass
        if not 8 <= len(text) <= 64 or set(text) - set("0123456789abcdef"):
            raise invalid(
                "against", text, "the uid of a plan, or at least 8 hexadecimal digits of a version's hash", 400
            )
        found = get_visible(self.principal, PlanVersion.objects.all(), sha256__startswith=text)
        return _flat(plan_body(found)["plan"])


def _document(plan: Plan) -> dict[str, Any]:
    if plan.current_version is not None:
        return _flat(plan_body(plan.current_version)["plan"])
    document = parse_plan_text(plan.draft_text)
    with contextlib.suppress(PlanInvalid):  # a draft with faults is compared as it is written
        document = complete_plan(document)
    return _flat(document)


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict) and value:
        return {
            k: v for name, item in value.items() for k, v in _flat(item, f"{path}.{name}" if path else name).items()
        }
    if isinstance(value, float):
        return {path: encode_float(value)}  # a draft may say .nan, which JSON cannot carry
    if isinstance(value, list) and value:
        return {k: v for i, item in enumerate(value) for k, v in _flat(item, f"{path}[{i}]").items()}
    return {path: value}


class Inspect(PlanView):
    """Ask a worker what a freeze would bind."""

    summary, serializer, status_code = "Inspect: have a worker say what a freeze would bind", JobSerializer, 202
    right = PLAN_WRITE
    draft: inspection.ReadDraft

    def prepare(self, request: Request, **kwargs: Any) -> None:
        self.read_body(request)
        self.draft = inspection.read_draft(self.plan(kwargs["uid"]))

    def change(self, request: Request, **kwargs: Any) -> Response:
        plan = self.plan(kwargs["uid"])
        job = inspection.request_inspection(plan, by=self.actor(), at=timezone.now(), draft=self.draft)
        return Response(
            sparse(request, JobSerializer, [job])[0], status=202, headers={"Location": f"/api/v1/jobs/{job.uid}"}
        )


class Preview(PlanView):
    """What a freeze would store, from the newest inspection of this revision."""

    summary, serializer = "Preview a freeze", PreviewSerializer
    http_method_names = ["get", "head", "options"]

    def get(self, request: Request, **kwargs: Any) -> Response:
        """409 while there is no succeeded inspection."""
        check_parameters(request, ())
        plan = self.plan(kwargs["uid"])
        require(self.principal, PLAN_WRITE, plan.study)
        if plan.state != "draft":
            raise AlreadyFrozen(f"plan {plan.slug}: it is {plan.state}, expected a draft")
        body = inspection.freeze_preview(plan, inspection.inspected_bindings(_inspection(plan)))
        data = canonical_bytes(body)
        return Response({"sha256": sha256_hex(data), "bytes": len(data), "body": body})


def _inspection(plan: Plan) -> Any:
    job = inspection.inspection_of(plan)
    if job is None or job.state != "succeeded":
        found = "none" if job is None else f"one that is {job.state}" + (f": {job.error}" if job.error else "")
        raise ApiProblem(
            409, f"inspection: got {found}, expected a succeeded one of revision {plan.draft_revision}: POST …/inspect"
        )
    return job


class Freeze(PlanView):
    """Bind everything; the bytes never change again."""

    summary, serializer = "Freeze", PlanSerializer
    right = PLAN_FREEZE

    def change(self, request: Request, **kwargs: Any) -> Response:
        plan = self.plan(kwargs["uid"])
        self.read_body(request)
        if plan.state == "draft":
            _inspection(plan)
        inspection.freeze_inspected(plan, by=self.actor(), at=timezone.now())
        return _draft(request, plan)


class Supersede(PlanView):
    """A frozen plan that another one replaces; its results stay."""

    summary, serializer, body = "Supersede", PlanSerializer, ReasonBody
    right = PLAN_FREEZE

    def change(self, request: Request, **kwargs: Any) -> Response:
        plan = self.plan(kwargs["uid"])
        supersede_plan(plan, reason=self.read_body(request)["reason"], by=self.actor(), at=timezone.now())
        return _draft(request, plan)


class Start(PlanView):
    """Start the frozen plan; an execution that exists is answered as it is."""

    summary, serializer, status_code = "Start", ExecutionSerializer, 201
    right = RUN_CONTROL

    def change(self, request: Request, **kwargs: Any) -> Response:
        plan = self.plan(kwargs["uid"])
        self.read_body(request)
        if plan.current_version is None or plan.state != "frozen":
            raise NothingToRun(f"plan: got {plan.slug}, which is {plan.state}, expected a frozen plan")
        execution = start_execution(plan.current_version, by=self.actor(), at=timezone.now(), provenance=provenance())
        return Response(
            sparse(request, ExecutionSerializer, [execution])[0],
            status=201,
            headers={"Location": f"/api/v1/executions/{execution.uid}"},
        )


class PlanBytes(ApiView):
    """The canonical bytes that a frozen plan's hash covers."""

    tag, summary = "plans", "Download a frozen plan's canonical bytes"
    is_download = True

    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """The bytes."""
        plan = get_visible(self.principal, rows_of_plans(), uid=kwargs["uid"])
        if plan.current_version is None:
            raise Http404("plan: it is a draft, which has no canonical bytes")
        version = plan.current_version
        return send_bytes(
            request, bytes(version.bytes), version.sha256, f"plan-{version.sha256}.json", "application/octet-stream"
        )
