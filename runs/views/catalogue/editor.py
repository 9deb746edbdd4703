"""Plan editor: a new draft, the form and the text side by side, saving under a revision, differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from runs.access import PLAN_WRITE, visible
from runs.actions.drafts import Checked, DraftExists, StaleDraft, check_draft, create_draft, update_draft
from runs.actions.plans import parse_plan_text
from runs.errors import AlreadyFrozen
from runs.models import Plan, PlanVersion
from runs.presenters.catalogue import difference as differing
from runs.presenters.catalogue.planform import FormSection, build_form, merge, read_form, walk
from runs.presenters.catalogue.problems import Placed, place, translated
from runs.presenters.catalogue.starts import start_text, starts
from runs.presenters.catalogue.yamltext import path_of, remove_item, rewrite, tree
from runs.presenters.frame import Crumb
from runs.presenters.states import state_view
from runs.presenters.told import problem_told, told
from runs.views.base import render_page
from runs.views.catalogue.base import crumbs_of, guarded, open_plan, open_study
from workbench.contracts.errors import PlanInvalid

MAX_NUMBERED = 4000  # lines that get a number and a mark
NEW_ITEMS: Mapping[str, dict[str, Any]] = {
    "arms": {"key": "", "title": {"en": ""}, "role": "context"},
    "strict_pairs": {"arms": [], "treatment": []},
    "evaluation.splits": {"split": "test", "tasks": 1},
    "endpoints": {
        "id": "", "definition": "", "metric": "reward", "direction": "none", "unit": "", "split": "test",
        "condition": "standard", "compare": {"kind": "pair", "arms": []},
    },
}  # fmt: skip


@dataclass
class Editor:
    """What the page shows. ``base``: the text that the form was made from; ``notes``: what a reader should know."""

    text: str
    base: str
    sections: list[FormSection]
    problems: list[Placed]
    checked: Checked
    notes: list[str] = field(default_factory=list)
    joined: bool = True  # whether the form that was posted says what the text now says

    @property
    def lines(self) -> list[tuple[int, list[Placed]]]:
        """Each line's number with its problems; empty for a very long text."""
        count = self.text.count("\n") + 1
        if count > MAX_NUMBERED:
            return []
        found: dict[int, list[Placed]] = {}
        for problem in self.problems:
            found.setdefault(min(problem.line, count), []).append(problem)
        return [(n, found.get(n, [])) for n in range(1, count + 1)]

    @property
    def all_parts(self) -> list[Any]:
        """Everything that a problem may hang on: sections, fields, lists."""
        return [*self.sections, *walk(self.sections)]

    @property
    def rows(self) -> int:
        """Height of the text field in lines."""
        return min(max(self.text.count("\n") + 2, 24), MAX_NUMBERED)


def open_text(plan: Plan, text: str) -> Editor:
    """The editor of a text that is stored."""
    checked = check_draft(plan.study.slug, plan.slug, text)
    return _shown(checked, text, text if checked.document is not None else "", checked.document or {})


def _shown(checked: Checked, text: str, base: str, form: dict[str, Any], notes: list[str] | None = None) -> Editor:
    sections = build_form(form)
    root = tree(text) if checked.document is not None else None
    placed = place(checked.problems, root=root, document=checked.document, sections=sections, line=checked.line)
    return Editor(text, base, sections, placed, checked, notes or [])


def _document(text: str) -> dict[str, Any]:
    try:
        return parse_plan_text(text)
    except PlanInvalid:
        return {}


def edited(plan: Plan, posted: Mapping[str, str]) -> Editor:
    """Both sides as they were posted, brought together: what the form changed is written into the text."""
    text = posted.get("yaml", "").replace("\r\n", "\n")
    base = posted.get("base", "").replace("\r\n", "\n")
    before = _document(base)
    form = read_form(posted, before)
    checked = check_draft(plan.study.slug, plan.slug, text)
    current = checked.document if checked.document is not None else {} if not text.strip() else None
    if current is None:
        notes = [
            _("The text cannot be read, so the form and the text wait for each other; both stay as you typed them.")
        ]
        return _shown(checked, text, base, form, notes)
    text, document, notes = _together(text, current, before, form, posted.get("do", ""))
    editor = _shown(check_draft(plan.study.slug, plan.slug, text), text, text, document, notes)
    editor.joined = document == form
    return editor


def _together(
    text: str, current: dict[str, Any], before: dict[str, Any], form: dict[str, Any], action: str
) -> tuple[str, dict[str, Any], list[str]]:
    notes, document = [], merge(current, before, form)
    verb, _colon, path = action.partition(":")
    if verb == "add" and path in NEW_ITEMS:
        document = _with_item(document, path, NEW_ITEMS[path])
    if document != current or not text.strip():
        text, kept = rewrite(text, document)
        if not kept:
            notes.append(_("The text was written anew from the form: its comments could not be kept."))
    if verb == "remove":
        text = _without(text, document, path)
        document = _document(text)
    return text, document, notes


def _with_item(document: dict[str, Any], path: str, item: dict[str, Any]) -> dict[str, Any]:
    head, _dot, rest = path.partition(".")
    if rest:
        inner = document.get(head)
        return {**document, head: _with_item(inner if isinstance(inner, dict) else {}, rest, item)}
    rows = document.get(head)
    return {**document, head: [*(rows if isinstance(rows, list) else []), item]}


def _without(text: str, document: dict[str, Any], path: str) -> str:
    steps, value = path_of(path), document
    if not steps or not isinstance(steps[-1], int):
        return text
    for step in steps:
        try:
            value = value[step]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return text
    return remove_item(text, steps)


def _page(request: HttpRequest, plan: Plan, editor: Editor, *, status: int = 200, **extra: Any) -> HttpResponse:
    context = {"plan": plan, "editor": editor, "revision": plan.draft_revision, "theirs": None, "refused": [], **extra}
    if request.headers.get("HX-Request"):
        readable = editor.checked.document is not None
        changed = editor.text != request.POST.get("yaml", "").replace("\r\n", "\n")
        stays = request.POST.get("side", "") == "form" and editor.joined  # inputs that say the same keep their cursor
        context |= {"swap_form": readable and not stays, "swap_text": readable and changed, "partial": True}
        return render(request, "catalogue/parts/sync.html", context)
    return render_page(
        request, "catalogue/editor.html", section="plans", title=_("Edit %(plan)s") % {"plan": plan.slug},
        crumbs=crumbs_of(plan, _("Edit")), study=plan.study, status=status, **context,
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@guarded
def edit(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """The editor; a POST checks, adds, removes or saves, and answers with everything that was typed."""
    principal, found = open_plan(request, study, plan, PLAN_WRITE)
    if found.state != "draft":
        messages.error(request, _("This plan is %(state)s: its bytes never change. Copy it under another name.") % {
            "state": state_view("plan", found.state).word
        })  # fmt: skip
        if request.method != "POST":
            return redirect("runs:plan", study, plan)
    if request.method != "POST":
        return _page(request, found, open_text(found, found.draft_text))
    editor = edited(found, request.POST)
    revision = _number(request.POST.get("revision", ""))
    if request.POST.get("do") != "save" or request.headers.get("HX-Request"):  # a fragment never saves
        return _page(request, found, editor, revision=revision)
    try:
        saved = update_draft(found, editor.text, revision=revision, by=principal.actor(), at=timezone.now())
    except PlanInvalid as error:
        return _page(request, found, editor, status=422, revision=revision, refused=translated(error.problems))
    except StaleDraft as error:
        return _stale(request, error.plan, editor, revision)
    except AlreadyFrozen:
        return _page(request, found, editor, status=409, revision=revision, frozen=True)
    _say_saved(request, saved, len(editor.problems))
    return redirect("runs:plan_edit", study, plan)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _say_saved(request: HttpRequest, plan: Plan, wrong: int) -> None:
    if wrong:
        text = _("Saved as revision %(n)d, with %(wrong)d problems: it cannot be frozen yet.")
    else:
        text = _("Saved as revision %(n)d. Nothing keeps it from being frozen.")
    messages.success(request, text % {"n": plan.draft_revision, "wrong": wrong})


def _stale(request: HttpRequest, current: Plan, editor: Editor, revision: int) -> HttpResponse:
    """Both texts: nothing was saved, and saving again is a choice made after seeing the other."""
    theirs = {
        "text": current.draft_text,
        "revision": current.draft_revision,
        "yours": revision,
        "lines": differing.text_lines(current.draft_text, editor.text),
    }
    return _page(request, current, editor, status=409, revision=current.draft_revision, theirs=theirs)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@guarded
def new(request: HttpRequest, study: str) -> HttpResponse:
    """A new draft from a template."""
    principal, found = open_study(request, study, PLAN_WRITE)
    name, start = request.POST.get("name", "").strip(), request.POST.get("start", "")
    start = start or request.GET.get("start", "minimal")
    problems: list[Any] = []
    status = 200
    if request.method == "POST":
        text = start_text(principal, start, study=found.slug, name=name)
        if text is None:
            raise Http404("start: no such template")
        try:
            plan = create_draft(found, name, text, by=principal.actor(), at=timezone.now())
        except PlanInvalid as error:
            problems, status = [problem_told(problem) for problem in error.problems], 422
        except DraftExists as error:
            problems, status = [told(error)], 409
        else:
            return redirect("runs:plan_edit", found.slug, plan.slug)
    return render_page(
        request, "catalogue/new.html", section="plans", title=_("New plan"), study=found, status=status,
        crumbs=[Crumb(found.slug, reverse("runs:study", args=[found.slug])), Crumb(_("New plan"))],
        own=found, starts=starts(principal), name=name, start=start, problems=problems,
    )  # fmt: skip


@require_safe
def difference(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """This plan against another one, or against a version: field by field, and line by line."""
    principal, found = open_plan(request, study, plan)
    wanted = request.GET.get("with", "")
    rows = visible(principal, Plan.objects.select_related("study", "current_version")).order_by("study__slug", "slug")
    other, compared = None, None
    if wanted:
        other = _side(principal, wanted)
        if other is None:
            raise Http404("with: no such plan or version that you can see")
        compared = differing.compare(other, _own(found))
    choices = [f"{p.study.slug}/{p.slug}" for p in rows[:500] if p.pk != found.pk]
    return render_page(
        request, "catalogue/difference.html", section="plans", title=_("Difference"), study=found.study,
        crumbs=crumbs_of(found, _("Difference")), plan=found, choices=choices, wanted=wanted, other=other,
        own=_own(found), compared=compared,
    )  # fmt: skip


def _own(plan: Plan) -> differing.Side:
    return differing.version_side(plan.current_version) if plan.current_version else differing.draft_side(plan)


def _side(principal: Any, wanted: str) -> differing.Side | None:
    """``study/plan`` or the hash of a version."""
    if "/" in wanted:
        study, _slash, slug = wanted.partition("/")
        rows = Plan.objects.select_related("study", "current_version__plan__study")
        plan = visible(principal, rows).filter(study__slug=study, slug=slug).first()
        return _own(plan) if plan is not None else None
    if len(wanted) < 8:
        return None
    versions = PlanVersion.objects.select_related("plan__study")
    version = visible(principal, versions).filter(sha256__startswith=wanted.lower()).first()
    return differing.version_side(version) if version is not None else None
