"""The expected table of rights, written by hand: every address, every method, every kind of caller.

Columns: nobody (not signed in), stranger (signed in, no role in the private study, admin of another),
viewer, researcher, reviewer, worker, admin of the study, site admin.

    o  let through (an answer that is none of the others: also 409 or 422, where the request itself is refused)
    l  asked to sign in: 302 to the login page, or 401
    f  403, seen and not allowed
    n  404, as if it did not exist

The study is private. API rows are asked with a session and with a token of all scopes; where a token is
answered otherwise, ``token`` has its own eight letters.
"""

from __future__ import annotations

from tests.people.rights_edit_pages import EDIT_PAGES
from tests.people.rights_evidence import EVIDENCE
from tests.people.rights_evidence_api import EVIDENCE_API
from tests.people.rights_reviews import REVIEWS
from tests.people.rights_row import (
    AUDITORS,
    EVERYONE,
    MANAGERS,
    NEVER,
    READERS,
    READERS_SIGNED_IN,
    SIGNED_IN,
    SITE_ADMINS,
    WRITERS,
    Row,
)
from tests.people.rights_tracking import TRACKING
from tests.people.rights_trials import TRIALS

_PLAN = "/studies/{study}/plans/{plan}/"
_DRAFT = "/studies/{study}/plans/{draft}/"

PAGES = [
    Row("alive", "GET", "/healthz", EVERYONE),
    Row("ready", "GET", "/readyz", EVERYONE),
    Row("metrics", "GET", "/metrics", "lffffffo"),
    Row("login", "GET", "/accounts/login/", EVERYONE),
    Row("login", "POST", "/accounts/login/", EVERYONE, {"username": "viewer", "password": "wrong"}),
    Row("account_login", "GET", "/accounts/login/", EVERYONE),
    Row("account_login", "POST", "/accounts/login/", EVERYONE, {"username": "viewer", "password": "wrong"}),
    Row("logout", "GET", "/accounts/logout/", EVERYONE),
    Row("logout", "POST", "/accounts/logout/", EVERYONE),
    Row("account_logout", "GET", "/accounts/logout/", EVERYONE),
    Row("account_logout", "POST", "/accounts/logout/", EVERYONE),
    Row("account_inactive", "GET", "/accounts/inactive/", EVERYONE),
    Row("account_signup", "GET", "/accounts/signup/", EVERYONE),  # says that it is closed
    Row("account_signup", "POST", "/accounts/signup/", EVERYONE, {"username": "new", "password1": "x"}),
    Row("account_change_password", "GET", "/accounts/password/", SIGNED_IN),
    Row("account_change_password", "POST", "/accounts/password/", SIGNED_IN, {"oldpassword": "wrong"}),
    Row("account_reauthenticate", "GET", "/accounts/reauthenticate/", SIGNED_IN),
    Row("account_reauthenticate", "POST", "/accounts/reauthenticate/", SIGNED_IN, {"password": "wrong"}),
    Row("set_language", "POST", "/i18n/setlang/", EVERYONE, {"language": "en"}),
    Row("runs:favicon", "GET", "/favicon.ico", EVERYONE),
    # Lists and what they lead from: everyone opens them, each sees only what is theirs (test_two_studies.py).
    Row("runs:now", "GET", "/", EVERYONE),
    Row("runs:now_live", "GET", "/now/live/", EVERYONE),
    Row("runs:search", "GET", "/search/?q={run_name}", EVERYONE),
    Row("runs:plans", "GET", "/plans/", EVERYONE),
    Row("runs:runs", "GET", "/runs/", EVERYONE),
    Row("runs:evaluations", "GET", "/evaluations/", EVERYONE),
    Row("runs:checkpoints", "GET", "/checkpoints/", EVERYONE),
    Row("runs:receipts", "GET", "/receipts/", EVERYONE),
    Row("runs:jobs", "GET", "/jobs/", EVERYONE),
    Row("runs:task_sets", "GET", "/task-sets/", EVERYONE),
    Row("runs:environments", "GET", "/environments/", EVERYONE),
    Row("runs:models", "GET", "/models/", EVERYONE),
    Row("runs:controls", "GET", "/controls/", EVERYONE),
    Row("runs:compare", "GET", "/compare/", EVERYONE),
    Row("runs:groups", "GET", "/groups/", EVERYONE),
    Row("runs:trajectories", "GET", "/trajectories/", EVERYONE),
    Row("runs:tasks", "GET", "/tasks/", EVERYONE),
    Row("runs:query_language", "GET", "/query-language/", EVERYONE),
    Row("api_docs", "GET", "/api/", EVERYONE),
    # One thing of the study.
    Row("runs:study", "GET", "/studies/{study}/", READERS),
    Row("runs:plan", "GET", _PLAN, READERS),
    Row("runs:plan", "GET", _DRAFT, READERS),
    Row("runs:plan_bytes", "GET", _PLAN + "plan.json", READERS),
    Row("runs:results", "GET", _PLAN + "results/", READERS),
    Row("runs:plan_difference", "GET", _PLAN + "difference/", READERS),
    Row("runs:plan_freeze", "GET", _DRAFT + "freeze/", READERS),
    Row("runs:plan_freeze_live", "GET", _DRAFT + "freeze/live/", READERS),
    Row("runs:run", "GET", "/runs/{run}/", READERS),
    Row("runs:run_live", "GET", "/runs/{run}/live/", READERS),
    Row("runs:series_json", "GET", "/runs/{run}/series/reward.json", READERS),
    Row("runs:layers", "GET", "/runs/{run}/layers/", READERS),
    Row("runs:behind", "GET", "/behind/{group}/", READERS),
    Row("runs:update", "GET", "/updates/{update}/", READERS),
    Row("runs:reading_judge", "POST", "/runs/{run}/layers/judge/", "lnfoofoo", {"rule": "padding"}),
    Row("runs:layer_data", "GET", "/runs/{run}/layers/data.json?series={series}", READERS),
    Row("runs:series_csv", "GET", "/runs/{run}/series/reward.csv", READERS),
    Row("runs:group", "GET", "/groups/{group}/", READERS),
    Row("runs:trajectory", "GET", "/trajectories/{trajectory}/", READERS),
    Row("runs:trajectory_tokens", "GET", "/trajectories/{trajectory}/tokens.json", READERS),
    Row("runs:adapter", "GET", "/checkpoints/{adapter}/adapter/", READERS),
    Row("runs:receipts", "GET", "/receipts/?stream=run:{run}", READERS),
    Row("runs:receipts", "GET", "/receipts/?stream=study:{study_uid}", READERS),
    Row("runs:receipt", "GET", "/receipts/{receipt}/", READERS),
    Row("runs:job", "GET", "/jobs/{job}/", READERS),
    Row("runs:task_set", "GET", "/task-sets/{task_set}/", READERS),
    Row("runs:task", "GET", "/tasks/{task}/", READERS),
    Row("runs:branches", "GET", "/trajectories/{trajectory}/branches/", READERS),
    Row("runs:branch_ask", "POST", "/trajectories/{trajectory}/branches/ask/", WRITERS, {"decision": "99"}),
    Row("runs:one_controls", "GET", "/controls/{controls}/", READERS),
    Row("runs:pair", "GET", _PLAN + "pairs/e2f/e3/", READERS),
    Row("runs:plan_discarded", "GET", _PLAN + "discarded/", READERS),
    Row("runs:run_discarded", "GET", "/runs/{run}/discarded/", READERS),
    Row("runs:lineage", "GET", _PLAN + "lineage/", READERS),
    Row("runs:checkpoint", "GET", "/checkpoints/{checkpoint}/", READERS),
    Row("runs:compare", "GET", "/compare/?run={run}&run={other_run}", READERS),
    Row("runs:compare_series", "GET", "/compare/series/reward.json?run={run}", READERS),
    Row("runs:divergence", "GET", "/trajectories/{trajectory}/against/{sibling}/", READERS),
    # Runs from elsewhere, what names mean, layers side by side, files of charts.
    Row("runs:logged", "GET", "/logged/", EVERYONE),
    Row("runs:metrics_table", "GET", "/metrics-table/", EVERYONE),
    Row("runs:logged_run", "GET", "/logged/{logged_uid}/", READERS),
    Row("runs:logged_file", "GET", "/logged/{logged_uid}/files/a.txt", READERS),
    Row("runs:logged_rollout", "GET", "/logged/{foreign_run}/rollouts/{foreign}/", READERS),
    Row("runs:layers_compare", "GET", "/layers/compare/", EVERYONE),
    Row("runs:layers_compare", "GET", "/layers/compare/?run={run}&run={other_run}", READERS),
    Row("runs:layers_compare_card", "GET", "/layers/compare/{shared}/card/?run={run}&run={other_run}", READERS),
    Row("runs:layers_compare_export", "GET", "/layers/compare/{shared}.csv?run={run}&run={other_run}", READERS),
    Row("runs:card_export", "GET", "/runs/{run}/layers/export/{card}.csv", READERS),
    # Changes in the study.
    Row("runs:plan_new", "GET", "/studies/{study}/plans/new/", WRITERS),
    Row("runs:plan_new", "POST", "/studies/{study}/plans/new/", WRITERS, {"name": "another", "start": "minimal"}),
    Row("runs:plan_edit", "GET", _DRAFT + "edit/", WRITERS),
    Row("runs:plan_edit", "POST", _DRAFT + "edit/", WRITERS, {"yaml": "a: 1", "do": "save", "revision": "1"}),
    Row("runs:plan_inspect", "POST", _DRAFT + "freeze/inspect/", WRITERS),
    Row("runs:plan_do_freeze", "POST", _DRAFT + "freeze/now/", WRITERS, {"sha256": "0" * 64}),
    Row("runs:plan_start", "POST", _PLAN + "start/", WRITERS),
    Row("runs:plan_supersede", "POST", _PLAN + "supersede/", WRITERS, {"reason": "a better one"}),
    Row("runs:run_control", "POST", "/runs/{run}/pause/", WRITERS),
    Row("runs:run_control", "POST", "/runs/{run}/cancel/", WRITERS),
    Row("runs:receipts_verify", "POST", "/receipts/verify/", READERS_SIGNED_IN, {"stream": "run:{run}"}),
    # People.
    Row("runs:members", "GET", "/studies/{study}/people/", READERS_SIGNED_IN),
    Row("runs:member_add", "POST", "/studies/{study}/people/add/", MANAGERS, {"user": "stranger", "role": "viewer"}),
    Row(
        "runs:member_remove", "POST", "/studies/{study}/people/remove/", MANAGERS, {"user": "viewer", "role": "viewer"}
    ),
    Row("runs:study_visibility", "POST", "/studies/{study}/visibility/", MANAGERS, {"visibility": "public"}),
    Row("runs:study_audit", "GET", "/studies/{study}/audit/", AUDITORS),
    Row("runs:study_new", "GET", "/studies/new/", SIGNED_IN),
    Row(
        "runs:study_new",
        "POST",
        "/studies/new/",
        SIGNED_IN,
        {"slug": "third", "title_en": "T", "visibility": "private"},
    ),
    Row("runs:account", "GET", "/account/", SIGNED_IN),
    Row("runs:token_issue", "POST", "/account/tokens/", SIGNED_IN, {"name": "n", "scopes": "read", "expiry": "30"}),
    Row("runs:token_revoke", "POST", "/account/tokens/zzzzzzzz/revoke/", "lnnnnnnn"),  # nobody's
    Row("runs:sessions_end", "POST", "/account/sessions/end/", SIGNED_IN),
    Row("runs:filter_save", "POST", "/filters/save/", SIGNED_IN, {"page": "runs", "name": "n", "query": "is:pending"}),
    Row("runs:filter_apply", "GET", "/filters/999999/", "lnnnnnnn"),  # nobody's
    Row("runs:filter_delete", "POST", "/filters/999999/delete/", "lnnnnnnn"),
    Row("runs:users", "GET", "/users/", SITE_ADMINS),
    Row("runs:user_create", "POST", "/users/new/", SITE_ADMINS, {"name": "fresh"}),
    Row("runs:user_change", "POST", "/users/{viewer_pk}/deactivate/", SITE_ADMINS),
    Row("runs:user_change", "POST", "/users/{viewer_pk}/make-admin/", SITE_ADMINS),
    Row("runs:audit", "GET", "/audit/", SITE_ADMINS),
]

_API = "/api/v1/"
_TOKEN_NEVER = "lfffffff"  # a token makes and ends no tokens

API = [
    Row("api:openapi", "GET", _API + "openapi.json", EVERYONE),
    Row("api:me", "GET", _API + "me", EVERYONE),
    Row("api:tokens", "GET", _API + "me/tokens", SIGNED_IN),
    Row("api:tokens", "POST", _API + "me/tokens", SIGNED_IN, {"name": "n", "scopes": ["read"]}, token=_TOKEN_NEVER),
    Row("api:token_revoke", "POST", _API + "me/tokens/zzzzzzzz/revoke", "lnnnnnnn", token=_TOKEN_NEVER),
    Row("api:studies", "GET", _API + "studies", EVERYONE),
    Row("api:studies", "POST", _API + "studies", SIGNED_IN, {"slug": "third", "title_en": "T"}),
    Row("api:study", "GET", _API + "studies/{study}", READERS),
    Row("api:plan_create", "POST", _API + "studies/{study}/plans", WRITERS, {"name": "another", "text": "a: 1"}),
    Row("api:plans", "GET", _API + "plans", EVERYONE),
    Row("api:plan", "GET", _API + "plans/{plan_uid}", READERS),
    Row("api:plan", "PUT", _API + "plans/{draft_uid}", WRITERS, {"text": "a: 1"}),
    Row("api:plan", "PATCH", _API + "plans/{draft_uid}", WRITERS, {"text": "a: 1"}),
    Row("api:plan_validate", "POST", _API + "plans/{draft_uid}/validate", READERS_SIGNED_IN),
    Row("api:plan_difference", "GET", _API + "plans/{draft_uid}/difference?against={plan_uid}", READERS),
    Row("api:plan_inspect", "POST", _API + "plans/{draft_uid}/inspect", WRITERS),
    Row("api:plan_preview", "GET", _API + "plans/{draft_uid}/preview", "nnfoffoo"),
    Row("api:plan_freeze", "POST", _API + "plans/{draft_uid}/freeze", WRITERS),
    Row("api:plan_supersede", "POST", _API + "plans/{plan_uid}/supersede", WRITERS, {"reason": "a better one"}),
    Row("api:plan_start", "POST", _API + "plans/{plan_uid}/start", WRITERS),
    Row("api:plan_cells", "GET", _API + "plans/{plan_uid}/cells", READERS),
    Row("api:plan_bytes", "GET", _API + "plans/{plan_uid}/bytes", READERS),
    Row("api:executions", "GET", _API + "executions", EVERYONE),
    Row("api:execution", "GET", _API + "executions/{execution}", READERS),
    Row("api:execution_progress", "GET", _API + "executions/{execution}/progress", READERS),
    Row("api:execution_control", "POST", _API + "executions/{execution}/pause", WRITERS),
    Row("api:runs", "GET", _API + "runs", EVERYONE),
    Row("api:run", "GET", _API + "runs/{run}", READERS),
    Row("api:series_list", "GET", _API + "runs/{run}/series", READERS),
    Row("api:series", "GET", _API + "runs/{run}/series/reward", READERS),
    Row("api:run_control", "POST", _API + "runs/{run}/pause", WRITERS),
    Row("api:jobs", "GET", _API + "jobs", EVERYONE),
    Row("api:job", "GET", _API + "jobs/{job}", READERS),
    Row("api:groups", "GET", _API + "groups", EVERYONE),
    Row("api:group", "GET", _API + "groups/{group}", READERS),
    Row("api:group_captures", "GET", _API + "groups/{group}/captures", READERS),
    Row("api:trajectories", "GET", _API + "trajectories", EVERYONE),
    Row("api:trajectory", "GET", _API + "trajectories/{trajectory}", READERS),
    Row("api:trajectory_tokens", "GET", _API + "trajectories/{trajectory}/tokens.arrow", READERS),
    Row("api:captures", "GET", _API + "captures", EVERYONE),
    Row("api:capture", "GET", _API + "captures/{capture}", READERS),
    Row("api:capture_bytes", "GET", _API + "captures/{capture}/bytes", READERS),
    Row("api:checkpoints", "GET", _API + "checkpoints", EVERYONE),
    Row("api:checkpoint", "GET", _API + "checkpoints/{checkpoint}", READERS),
    Row("api:checkpoint_bytes", "GET", _API + "checkpoints/{checkpoint}/bytes", READERS),
    Row("api:evaluations", "GET", _API + "evaluations", EVERYONE),
    Row("api:task_sets", "GET", _API + "task-sets", EVERYONE),
    Row("api:task_set", "GET", _API + "task-sets/{task_set_uid}", READERS),
    Row("api:tasks", "GET", _API + "tasks", EVERYONE),
    Row("api:task", "GET", _API + "tasks/{task}", READERS),
    Row("api:branches", "GET", _API + "branches", EVERYONE),
    Row("api:branch", "GET", _API + "branches/{branch}", READERS),
    Row("api:branch_request", "POST", _API + "trajectories/{trajectory}/branches", WRITERS, {"decision": 0}),
    Row("api:controls", "GET", _API + "controls", EVERYONE),
    Row("api:one_controls", "GET", _API + "controls/{controls}", READERS),
    Row("api:control_slots", "GET", _API + "controls/{controls}/slots", READERS),
    Row("api:controls_request", "POST", _API + "studies/{study}/controls", WRITERS, {"environment": "code_repair"}),
    Row("api:receipts", "GET", _API + "receipts", EVERYONE),
    Row("api:receipt", "GET", _API + "receipts/{receipt}", READERS),
    Row("api:receipt_bytes", "GET", _API + "receipts/{receipt}/bytes", READERS),
    Row("api:streams", "GET", _API + "streams", EVERYONE),
    Row("api:events", "GET", _API + "events?run={run}", READERS),
    Row("api:not_found", "GET", _API + "no/such/address", NEVER),
]

TABLE = PAGES + API + TRIALS + TRACKING + EVIDENCE + EVIDENCE_API + REVIEWS + EDIT_PAGES
