"""Who may do what: the one place that decides, for pages, API and commands alike.

A right is held in a study: the role gives capabilities, a token's scopes narrow them. What a
principal may not even see is answered as if it did not exist (``Http404``); what it sees and may
not change is ``NotAllowed``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest

from runs.actions.actors import person_actor
from runs.errors import NotAllowed
from runs.models import (
    Actor,
    ApiToken,
    Arm,
    AuditEntry,
    EvaluationItem,
    Execution,
    Group,
    Intervention,
    Job,
    Membership,
    MetricSeries,
    Plan,
    PlanVersion,
    Run,
    Study,
    TrackedRun,
    Trajectory,
    Trial,
    TrialSet,
    Turn,
    UpdateBatch,
    User,
)

M = TypeVar("M", bound=Model)

READ = "study.read"
PLAN_WRITE, PLAN_FREEZE = "plan.write", "plan.freeze"
RUN_CONTROL = "run.control"
LOG_WRITE = "log.write"
EVIDENCE_WRITE = "evidence.write"
REVIEW_WRITE = "review.write"
MEMBER_MANAGE = "member.manage"
AUDIT_READ = "audit.read"

# Role -> capabilities. docs/rights.md says the same in words; a test compares both with a table written by hand.
ROLES: Mapping[str, frozenset[str]] = {
    Membership.VIEWER: frozenset({READ}),
    Membership.RESEARCHER: frozenset({READ, PLAN_WRITE, PLAN_FREEZE, RUN_CONTROL, LOG_WRITE, EVIDENCE_WRITE}),
    Membership.REVIEWER: frozenset({READ, REVIEW_WRITE, AUDIT_READ}),
    Membership.WORKER: frozenset({READ, LOG_WRITE}),
    Membership.ADMIN: frozenset(
        {READ, PLAN_WRITE, PLAN_FREEZE, RUN_CONTROL, LOG_WRITE, EVIDENCE_WRITE, MEMBER_MANAGE, AUDIT_READ}
    ),
}
# Token scope -> capabilities that it lets through.
SCOPES: Mapping[str, frozenset[str]] = {
    "read": frozenset({READ, AUDIT_READ}),
    "write": frozenset({READ, PLAN_WRITE, PLAN_FREEZE, RUN_CONTROL, EVIDENCE_WRITE}),
    "log": frozenset({READ, LOG_WRITE}),
    "review": frozenset({READ, REVIEW_WRITE}),
    "admin": frozenset({READ, MEMBER_MANAGE, AUDIT_READ}),
}

# Model -> path to its study. A row without a study (a parent checkpoint, a task set) is reached through its users.
STUDY_PATH: Mapping[type[Model], str] = {
    Plan: "study",
    PlanVersion: "plan__study",
    Arm: "plan_version__plan__study",
    Execution: "plan_version__plan__study",
    Run: "plan_version__plan__study",
    Group: "plan_version__plan__study",
    Trajectory: "group__plan_version__plan__study",
    Turn: "trajectory__group__plan_version__plan__study",
    TrialSet: "plan_version__plan__study",
    Intervention: "trial_set__plan_version__plan__study",
    Trial: "trial_set__plan_version__plan__study",
    EvaluationItem: "plan_version__plan__study",
    UpdateBatch: "run__plan_version__plan__study",
    MetricSeries: "run__plan_version__plan__study",
    AuditEntry: "study",
    TrackedRun: "study",
}
# Rows that may stand outside every plan, and the lookup that says so.
OF_PLANS: Mapping[type[Model], str] = {Run: "plan_version", MetricSeries: "run__plan_version"}
_OF_VERSION = "__plan__study"  # what follows a row's version in its path


@dataclass(frozen=True)
class Principal:
    """Who asks: a signed-in user (``token`` None), a script with that user's token, or nobody (``user`` None).

    ``kept``: what one request has looked up already; None for a principal that outlives a request.
    """

    user: User | None
    token: ApiToken | None = None
    kept: dict[str, Any] | None = field(default=None, compare=False, repr=False)

    def once(self, name: str, look_up: Callable[[], Any]) -> Any:
        """The result of ``look_up``, kept for the rest of the request."""
        if self.kept is None:
            return look_up()
        if name not in self.kept:
            self.kept[name] = look_up()
        return self.kept[name]

    @property
    def is_site_admin(self) -> bool:
        """Administers every study. A token needs the scope admin for it."""
        return self.user is not None and self.user.is_superuser and (self.token is None or "admin" in self.token.scopes)

    def actor(self) -> Actor:
        """The actor that records name. Raises ``NotAllowed`` for nobody: there is no anonymous mutation."""
        if self.user is None:
            raise NotAllowed("actor: got nobody, expected a signed-in person or a token; there is no anonymous change")
        return person_actor(self.user)


def principal_of(request: HttpRequest) -> Principal:
    """The principal of a page request, or of an API request that authentication has resolved."""
    found: Principal | None = getattr(request, "principal", None)
    if found is None:
        user = getattr(request, "user", None)
        found = Principal(user if isinstance(user, User) and user.is_active else None)
    key = (found.user.pk if found.user else None, found.token.pk if found.token else None)
    kept: dict[Any, Any] = request.__dict__.setdefault("_kept_by_principal", {})
    return found if found.kept is not None else replace(found, kept=kept.setdefault(key, {}))


def roles_in(principal: Principal, study: Study) -> frozenset[str]:
    """Roles that the principal's memberships give in a study."""
    if principal.user is None:
        return frozenset()
    return frozenset(Membership.objects.filter(study=study, user=principal.user).values_list("role", flat=True))


def _through_scopes(principal: Principal, capabilities: frozenset[str]) -> frozenset[str]:
    if principal.token is None:
        return capabilities
    let: frozenset[str] = frozenset().union(*(SCOPES.get(scope, frozenset()) for scope in principal.token.scopes))
    return capabilities & let


def capabilities(principal: Principal, study: Study, roles: Iterable[str] | None = None) -> frozenset[str]:
    """What the principal may do in a study. Empty: not even see it. ``roles``: where they have just been read."""
    found = roles_in(principal, study) if roles is None else roles
    held: frozenset[str] = frozenset().union(*(ROLES[role] for role in found))
    if study.visibility == Study.PUBLIC or (study.visibility == Study.INTERNAL and principal.user is not None):
        held |= {READ}
    if principal.user is not None and principal.user.is_superuser:
        held |= ROLES[Membership.ADMIN]
    return _through_scopes(principal, held)


def can(principal: Principal, capability: str, study: Study) -> bool:
    """Whether the principal holds the capability in the study."""
    return capability in capabilities(principal, study)


def require(principal: Principal, capability: str, study: Study, roles: Iterable[str] | None = None) -> None:
    """Raise ``Http404`` where the study is not visible, ``NotAllowed`` where the capability is missing.

    ``roles``: the principal's roles in the study, where they have just been read.
    """
    held = capabilities(principal, study, roles)
    if READ not in held:
        raise Http404("no such study")
    if capability not in held:
        who = "nobody signed in" if principal.user is None else f"user {principal.user.get_username()}"
        scopes = "" if principal.token is None else f" with a token of scope {', '.join(principal.token.scopes) or '—'}"
        expected, missing = "a role that includes it", capability
        if capability in capabilities(replace(principal, token=None, kept=None), study):  # the token is what lacks
            names = ", ".join(name for name, let in SCOPES.items() if capability in let)
            expected, missing = f"a token with scope {names}", ""
        raise NotAllowed(
            f"{capability}: got {who}{scopes} in study {study.slug}, expected {expected}", capability=missing
        )


def may_create_study(principal: Principal) -> bool:
    """Every signed-in person may found a study, and becomes its admin; a token needs the scope write."""
    return principal.user is not None and (principal.token is None or "write" in principal.token.scopes)


def visible_studies(principal: Principal) -> QuerySet[Study]:
    """Studies that the principal may read."""
    if principal.token is not None and not _through_scopes(principal, frozenset({READ})):
        return Study.objects.none()
    if principal.user is None:
        return Study.objects.filter(visibility=Study.PUBLIC)
    if principal.user.is_superuser:
        return Study.objects.all()
    mine = Membership.objects.filter(user=principal.user).values("study_id")
    return Study.objects.filter(Q(visibility__in=(Study.PUBLIC, Study.INTERNAL)) | Q(pk__in=mine))


def studies_with(principal: Principal, capability: str, most: int | None = None) -> list[Study]:
    """The first ``most`` studies by name in which the principal holds the capability. Two queries, however many."""
    if principal.user is None:
        return []
    roles: dict[int, list[str]] = {}
    for study, role in Membership.objects.filter(user=principal.user).values_list("study_id", "role"):
        roles.setdefault(study, []).append(role)
    rows = visible_studies(principal).order_by("slug")
    return [row for row in rows if capability in capabilities(principal, row, roles.get(row.pk, ()))][:most]


def study_ids(principal: Principal) -> list[int]:
    """Keys of the studies that the principal may read: a list and no subquery, see ``visible``."""
    found: list[int] = principal.once(
        "study_ids", lambda: list(visible_studies(principal).values_list("pk", flat=True))
    )
    return found


def version_ids(principal: Principal) -> list[int]:
    """Keys of the frozen versions of visible plans."""
    rows = PlanVersion.objects.filter(plan__study__in=study_ids(principal)).values_list("pk", flat=True)
    found: list[int] = principal.once("version_ids", lambda: list(rows))
    return found


def execution_ids(principal: Principal) -> list[int]:
    """Keys of the executions of visible plans: at most one for each frozen version."""
    rows = Execution.objects.filter(plan_version__in=version_ids(principal)).values_list("pk", flat=True)
    found: list[int] = principal.once("execution_ids", lambda: list(rows))
    return found


def sees_everything(principal: Principal) -> bool:
    """A signed-in site admin: rows without a study included."""
    return principal.user is not None and principal.user.is_superuser and principal.token is None


def visible(principal: Principal, rows: QuerySet[M], path: str | None = None) -> QuerySet[M]:
    """Narrow rows to visible studies. ``path``: the lookup from a row to its study (``STUDY_PATH`` by default).

    Runs are those of plans: what is logged from elsewhere has no plan and is reached through its ``TrackedRun``.
    """
    if sees_everything(principal):
        if path is None and rows.model in OF_PLANS:
            rows = rows.filter(**{f"{OF_PLANS[rows.model]}__isnull": False})
        return rows
    path = path or STUDY_PATH[rows.model]
    # A list and no subquery: SQLite's planner would walk every row otherwise; studies and versions are few.
    version = path.removesuffix(_OF_VERSION)
    if version != path:  # by the version's key: two joins less than by the study's, and an index serves it
        return rows.filter(**{f"{version}__in": version_ids(principal)})
    return rows.filter(**{f"{path}__in": study_ids(principal)})


def visible_jobs(principal: Principal, rows: QuerySet[Job] | None = None) -> QuerySet[Job]:
    """Jobs of visible studies, those outside an execution included."""
    rows = Job.objects.all() if rows is None else rows
    if sees_everything(principal):
        return rows
    return rows.filter(Q(execution__in=execution_ids(principal)) | Q(study__in=study_ids(principal)))


def get_visible(principal: Principal, rows: QuerySet[M], path: str | None = None, **lookup: Any) -> M:
    """The one visible row that matches. Raises ``Http404`` alike where it is absent and where it is hidden."""
    found = visible(principal, rows, path).filter(**lookup).first()
    if found is None:
        raise Http404(f"no {rows.model._meta.verbose_name} that you can see matches")
    return found


def study_of(row: Any) -> Study:
    """The study that a row belongs to."""
    if isinstance(row, Study):
        return row
    if isinstance(row, Job) and row.study is not None:
        return row.study
    if isinstance(row, Run) and row.plan_version_id is None:
        tracked: Study = row.tracked.study
        return tracked
    path = "execution__plan_version__plan__study" if isinstance(row, Job) else STUDY_PATH[type(row)]
    for name in path.split("__"):
        row = getattr(row, name)
    found: Study = row
    return found
