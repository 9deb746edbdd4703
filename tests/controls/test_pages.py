"""Pages and API of environment controls: counts with denominators, filters, who sees them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study
from runs.actions.tasks import store_task_set
from runs.models import ControlSet, Job, User
from runs.presenters import controls as shown
from runs.storage import blob_store
from tests.controls.rows import controls_on
from tests.controls.world import NAME
from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.controls import admission, counts, parse_controls
from worker.environments.base import Task
from worker.environments.taskvalues import task_values

AT = datetime(2026, 11, 30, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture
def made(settings: Any, tmp_path: Any) -> ControlSet:
    """Six tasks, four of them of the split test; of no plan, asked for in a public study."""
    settings.BLOB_ROOT = tmp_path / "blobs"
    study = ensure_study(
        "own", title={"en": "Own"}, summary={"en": "Own."}, by=service_actor("test"), at=AT, visibility="public"
    )
    tasks = [
        Task(f"t{n}", "test" if n < 4 else "train", "f", f"{n}?", {"files": {"a.py": str(n)}}, {}, ("edit",))
        for n in range(6)
    ]
    data = canonical_bytes(task_values(tasks, NAME))
    return controls_on(store_task_set(data, environment="own", version="1", store=blob_store()), AT, study=study)


@pytest.fixture
def client() -> Iterator[Client]:
    yield Client()


def test_the_list_says_what_is_admitted_and_what_is_not_known(made: ControlSet, client: Client) -> None:
    """t1 mismatches, t2 has an unknown empty, t3 both: 3 admitted, 2 refused, 1 unknown of six."""
    found = client.get("/controls/")
    row = found.context["rows"][0]
    assert (row.tasks, row.slots, row.admitted, row.refused, row.unknown) == (6, 36, 3, 2, 1)
    # mismatches: gold of t1, surface_only and the unseen half of gold of t3; strict: 36 without these and t2's empty
    assert row.count_of["expectation_mismatch"] == 3 and row.count_of["strict_pass"] == 32
    assert b"own 1" in found.content and b"bubblewrap" in found.content


def test_rows_say_what_the_record_says(made: ControlSet) -> None:
    """The page counts rows; the contract counts the record: they agree, by kind too, and in admission."""
    from runs.models import Document

    record = parse_controls(bytes(Document.objects.get(subject_uid=made.uid).bytes))
    expected = {(item.category, item.kind or ""): (item.count, item.of) for item in counts(record.slots)}
    table = {(name, kind): (count, of) for name, cells in shown.counts_table(made) for kind, count, of in cells}
    assert table == expected
    by_task: dict[str, list[Any]] = {}
    for slot in record.slots:
        by_task.setdefault(slot.task_uid, []).append(slot)
    words = {True: "admitted", False: "refused", None: "unknown"}
    assert list(shown.admissions(made).values()) == [words[admission(slots)] for slots in by_task.values()]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("", ["t0", "t1", "t2", "t3", "t4", "t5"]),
        ("split=train", ["t4", "t5"]),
        ("category=expectation_mismatch", ["t1", "t3"]),
        ("category=expectation_mismatch&kind=gold", ["t1", "t3"]),
        ("category=expectation_mismatch&kind=surface_only", ["t3"]),
        ("category=unresolved", ["t2"]),
        ("admission=unknown", ["t2"]),
        ("admission=refused&split=test", ["t1", "t3"]),
        ("admission=admitted&split=train", ["t4", "t5"]),
        ("category=nonsense&kind=1&admission=x", ["t0", "t1", "t2", "t3", "t4", "t5"]),
        ("category=unresolved&split=train", []),
        ("split=%00", []),
    ],
)
def test_filters_choose_tasks(made: ControlSet, client: Client, query: str, keys: list[str]) -> None:
    found = client.get(f"/controls/{made.uid}/?{query}")
    assert found.status_code == 200
    assert [row.task.key for row in found.context["listing"]] == keys
    assert all(len(row.slots) == 6 for row in found.context["listing"])


def test_a_later_record_is_named_on_the_earlier(made: ControlSet, client: Client) -> None:
    again = controls_on(made.task_set, AT, study=made.study)
    assert client.get(f"/controls/{made.uid}/").context["later"] == again
    assert client.get(f"/controls/{again.uid}/").context["later"] is None
    assert [row.own.ordinal for row in client.get("/controls/").context["rows"]] == [2, 1]


def test_of_no_visible_study_it_does_not_exist(made: ControlSet, client: Client) -> None:
    hidden = controls_on(made.task_set, AT)  # of no study and no plan
    for address in (
        f"/controls/{hidden.uid}/",
        f"/api/v1/controls/{hidden.uid}",
        f"/api/v1/controls/{hidden.uid}/slots",
    ):
        assert client.get(address).status_code == 404
    assert [row["uid"] for row in client.get("/api/v1/controls").json()["items"]] == [str(made.uid)]
    client.force_login(User.objects.create_user("site", is_superuser=True))
    assert client.get(f"/controls/{hidden.uid}/").status_code == 200


def test_the_api_gives_the_same_numbers(made: ControlSet, client: Client) -> None:
    found = client.get(f"/api/v1/controls/{made.uid}").json()
    assert found["tasks"] == {"admitted": 3, "refused": 2, "unknown": 1}
    assert {"category": "strict_pass", "count": 32, "of": 36} in found["counts"]
    wrong = client.get(f"/api/v1/controls/{made.uid}/slots?as_expected=false").json()["items"]
    assert sorted((item["key"], item["kind"]) for item in wrong) == [("t1", "gold"), ("t3", "surface_only")]
    unknown = client.get(f"/api/v1/controls/{made.uid}/slots?complete=false").json()["items"]
    assert {item["as_expected"] for item in unknown} == {None} and len(unknown) == 2
    assert client.get("/api/v1/controls?environment=other").json()["items"] == []


def test_controls_are_asked_for_as_a_job(made: ControlSet, client: Client) -> None:
    client.force_login(User.objects.create_user("site", is_superuser=True))

    def post(**body: Any) -> Any:
        return client.post("/api/v1/studies/own/controls", body, content_type="application/json")

    answer = post(environment="code_repair", splits=["test"])
    assert answer.status_code == 202 and answer.json()["kind"] == "run_controls"
    job = Job.objects.get(kind="run_controls")
    assert job.spec["controls"] == {"environment": "code_repair", "config": {}, "splits": ["test"]}
    assert post(environment="code_repair", config=[]).status_code == 422
    assert post(environment="").status_code == 422
    assert post(environment="code_repair", other=1).status_code == 422
    assert client.get(f"/jobs/{job.uid}/").status_code == 200


def test_an_empty_installation_says_how_to_begin(client: Client) -> None:
    assert b"manage.py controls run code_repair" in client.get("/controls/").content
