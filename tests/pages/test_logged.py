"""Runs from elsewhere: the list, one run, its files and rollouts, and the table of metrics."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.actions.tracking import set_tags
from runs.models import ImportedRollout, Study, TrackedRun
from runs.presenters.logged.charts import main_names
from runs.presenters.logged.rollout import view_of
from runs.presenters.logged.run import artifacts_of, tags_of
from runs.storage import blob_store
from tests.pages import elsewhere
from tests.pages.state import World
from workbench.contracts.metrics import METRIC_DEFINITIONS
from workbench.importers.mapping import FRAMEWORKS, mappings

pytestmark = pytest.mark.django_db
NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def head(world: World, db: None) -> TrackedRun:
    """Seven points: three of reward (one infinite) and three of kl, then two of reward, one of them at a step again."""
    return elsewhere.full(world.study, world.tick())


@pytest.fixture
def files(world: World, db: None) -> TrackedRun:
    rows = [elsewhere.item(1), elsewhere.item(2, grade="C", token_ids=None, is_policy_token=None, logprobs=None,
            reward=None, step=None, version_start=None, version_end=None)]  # fmt: skip
    return elsewhere.imported(world.study, world.tick(), rows)


def test_list_counts_points_and_attempts_and_marks(client: Client, head: TrackedRun, files: TrackedRun) -> None:
    """3 + 3 + 2 points; two attempts; nothing here is more than exploratory, and one import is partial."""
    answer = client.get("/logged/")
    rows = {row.head.pk: row for row in answer.context["rows"]}
    assert (rows[head.pk].points, rows[head.pk].attempts) == (8, 2)
    assert (rows[files.pk].points, rows[files.pk].attempts) == (0, 1)
    text = answer.content.decode()
    for part in ("2 logged runs", "grpo on trl", "exploratory", "partial", "running", f"/runs/{head.run.uid}/layers/"):
        assert part in text, part


def test_list_is_narrowed_by_name(client: Client, head: TrackedRun, files: TrackedRun) -> None:
    found = client.get("/logged/", {"q": "TRL grpo"}).context["rows"]
    assert [row.head.pk for row in found] == [head.pk]
    assert [row.head.pk for row in client.get("/logged/", {"q": files.external_id}).context["rows"]] == [files.pk]
    answer = client.get("/logged/", {"q": "<b>none</b>"}).content.decode()
    assert "No logged run that you can see" in answer and "<b>none</b>" not in answer


def test_list_turns_pages_of_fifty_and_asks_a_fixed_number_of_times(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(53):
        elsewhere.logged(world.study, f"run {number}", {"loss": [1.0]}, world.tick())
    with django_assert_max_num_queries(24):
        first = client.get("/logged/")
    assert len(first.context["rows"]) == 50 and first.context["rows"][0].head.name == "run 52"
    assert [row.head.name for row in client.get("/logged/?page=2").context["rows"]] == ["run 2", "run 1", "run 0"]


def test_empty_list_says_what_fills_it(client: Client, world: World, db: None) -> None:
    assert "manage.py import PATH --study STUDY" in client.get("/logged/").content.decode()


def test_page_of_a_run_says_everything_that_it_was_told(client: Client, head: TrackedRun) -> None:
    text = client.get(f"/logged/{head.run.uid}/").content.decode()
    for part in (
        "grpo on trl: running, 8 points of 2 names, 2 attempts.", "learning_rate", "1e-5", "mlflow.user", "out/a.txt",
        "the node came back", f"/runs/{head.run.uid}/layers/", "Exploratory",
        "No rollout was imported", "has not ended",
    ):  # fmt: skip
        assert part in text, part
    assert tags_of(head.run) == [("mlflow.user", "mara")] and len(artifacts_of(head.run)) == 1


def test_page_of_a_run_draws_its_main_series_at_once(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """12 names: 8 charts, reward first, and the way to all; the numbers stand there before a script runs."""
    series = {f"extra/{number:02d}": [float(number)] * 3 for number in range(9)}
    series |= {"reward": [0.25, 0.5], "grad_norm": [1.5, 2.5], "kl": [0.125, 0.0625]}
    head = elsewhere.logged(world.study, "many", series, world.tick(), framework="trl")
    with django_assert_max_num_queries(34):
        answer = client.get(f"/logged/{head.run.uid}/")
    main, text = answer.context["main"], answer.content.decode()
    assert [view.title for view in main.charts][:3] == ["reward", "grad_norm", "kl"] and main.total == 12
    assert [view.keys[0].value for view in main.charts][:3] == ["0.5", "2.5", "0.0625"]
    assert text.count("data-card=") == 8 and "8 of 12 names" in text and "All 12 by layer" in text
    bare = client.get(f"/logged/{elsewhere.logged(world.study, 'none', {}, world.tick()).run.uid}/").content.decode()
    assert "data-card" not in bare and "plotly" not in bare


def test_main_names_are_what_was_written_last_one_of_each_layer_in_turn() -> None:
    """A run of 1,000 s: what fell silent 100 s or less before the end is recent. Without a table: names in order."""
    newest = {"loss": 1_000_000, "reward": 900_000, "kl": 0, "entropy": 950_000, "z": 1_000_000, "a": 899_999}
    assert main_names("trl", newest) == ["reward", "loss", "entropy", "z", "kl", "a"]
    assert main_names("trl", newest, most=2) == ["reward", "loss"]
    assert main_names("", newest) == ["entropy", "loss", "reward", "z", "a", "kl"]
    assert main_names("trl", dict(reversed(newest.items()))) == main_names("trl", newest)
    assert main_names("trl", {}) == []


def test_more_tags_than_a_page_holds_are_counted(client: Client, head: TrackedRun) -> None:
    """310 tags and the one of the client: 300 are listed."""
    tags = {f"tag{number:03d}": str(number) for number in range(310)}
    set_tags(head, tags, at=head.updated_at)
    answer = client.get(f"/logged/{head.run.uid}/")
    assert (len(answer.context["tags"]), answer.context["tags_more"]) == (300, 11)
    assert "11 more are not listed" in answer.content.decode() and answer.context["artifacts_more"] == 0


def test_file_is_given_with_its_hash_and_never_opened_here(client: Client, head: TrackedRun) -> None:
    address = f"/logged/{head.run.uid}/files/out/a.txt"
    answer = client.get(address)
    assert b"".join(answer.streaming_content) == b"bytes"
    row = artifacts_of(head.run)[0]
    assert answer["X-Data-SHA256"] == row.sha256 and answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"].startswith("attachment") and answer["Content-Type"].endswith("octet-stream")
    assert client.get(f"/logged/{head.run.uid}/files/out").status_code == 404
    blob_store().delete(row.sha256)
    assert client.get(address).status_code == 404


def test_partial_import_says_what_is_missing_and_where(client: Client, files: TrackedRun) -> None:
    text = client.get(f"/logged/{files.run.uid}/").content.decode()
    for part in (
        "2 rollouts", "partial: 1 problem", "part/1.jsonl", "1,143", "Expecting value", "one JSON document",
        "1 thing could not be read", "4 left out on purpose",
    ):  # fmt: skip
        assert part in text, part


def test_what_came_from_files_stands_above_what_was_not_logged(client: Client, files: TrackedRun) -> None:
    """An imported run opens with its import and its rollouts, each once; a logged one ends with none of them."""
    text = client.get(f"/logged/{files.run.uid}/").content.decode()
    places = [text.index(f'id="{name}"') for name in ("imports", "rollouts", "parameters", "history")]
    assert places == sorted(places) and text.count('id="rollouts"') == 1
    chinese = client.get(f"/logged/{files.run.uid}/", headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "第 10 行" in chinese


def test_rollouts_are_listed_by_grade(client: Client, files: TrackedRun) -> None:
    answer = client.get(f"/logged/{files.run.uid}/")
    assert answer.context["grades"] == [("A", 1), ("C", 1)] and len(answer.context["listing"]) == 2
    only = client.get(f"/logged/{files.run.uid}/?grade=C").context["listing"]
    assert [row.grade for row in only] == ["C"]


def test_rollout_shows_text_tokens_and_what_its_grade_allows(client: Client, files: TrackedRun) -> None:
    first, second = ImportedRollout.objects.filter(run=files.run).order_by("position")
    text = client.get(f"/logged/{files.run.uid}/rollouts/{first.uid}/").content.decode()
    for part in (
        "Rollout 0 of step 3, reward 1.0000", "What is 2+2?", "It is 4 &lt;b&gt;.", "under one known policy version",
        "−0.2500", "no log-probability", "exact", "3 ids", str(second.uid), "seed",
    ):  # fmt: skip
        assert part in text, part
    other = client.get(f"/logged/{files.run.uid}/rollouts/{second.uid}/").content.decode()
    assert "of a file without steps" in other and "no claim about training" in other and 'id="tokens"' not in other


def test_changed_bytes_of_a_rollout_are_named(client: Client, files: TrackedRun) -> None:
    row = ImportedRollout.objects.filter(run=files.run).earliest("position")
    row.pk, row.uid, row.position, row.sha256 = None, NOBODY, 9, "0" * 64
    row._state.adding = True
    row.save()
    text = client.get(f"/logged/{files.run.uid}/rollouts/{NOBODY}/").content.decode()
    assert "unreadable" in text and "expected 0000" in text and "What is 2+2?" not in text


def test_view_of_messages_keeps_what_is_no_text() -> None:
    """Two messages; the second has a call and no content. Rewards sort by name; an unrecorded one stays None."""
    body = {
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [1]}],
        "rewards": {"b": None, "a": 0.5},
    }
    view = view_of(body)
    assert [(turn.role, turn.text) for turn in view.turns] == [
        ("user", "hi"), ("assistant", '{\n  "tool_calls": [\n    1\n  ]\n}'),
    ]  # fmt: skip
    assert view.rewards == (("a", 0.5), ("b", None)) and view.tokens == () and view.versions == (None, None)


def test_hidden_deleted_and_unknown_are_alike(client: Client, head: TrackedRun, files: TrackedRun) -> None:
    rollout = ImportedRollout.objects.filter(run=files.run).earliest("pk").uid
    paths = [f"/logged/{head.run.uid}/", f"/logged/{head.run.uid}/files/out/a.txt"]
    paths += [f"/logged/{files.run.uid}/rollouts/{rollout}/"]
    assert client.get(f"/logged/{head.run.uid}/rollouts/{rollout}/").status_code == 404  # of another run
    assert client.get(f"/logged/{NOBODY}/").status_code == 404
    TrackedRun.objects.update(deleted=True)
    assert {client.get(path).status_code for path in paths} == {404}
    TrackedRun.objects.update(deleted=False)
    Study.objects.update(visibility=Study.PRIVATE)
    assert {client.get(path).status_code for path in paths} == {404}
    assert client.get("/logged/").context["rows"] == []


def test_table_of_metrics_lists_every_definition_and_name(client: Client, world: World, db: None) -> None:
    answer = client.get("/metrics-table/")
    text = answer.content.decode()
    missing = [item.id for item in METRIC_DEFINITIONS.values() if f"<code>{item.id}</code>" not in text]
    assert missing == [] and answer.context["all_names"] == sum(len(mappings(name)) for name in FRAMEWORKS)
    assert 'aria-current="page"><span>Metrics</span>' in text and "≥ 0" in text and "0 – 1" in text


def test_table_of_metrics_finds_words_and_whole_names(client: Client, world: World, db: None) -> None:
    found = client.get("/metrics-table/", {"q": "pass@k gap"}).context["layers"]
    assert {row.item.id for _layer, rows in found for row in rows} >= {"l3.pass_gap/1"}
    trainers = client.get("/metrics-table/", {"q": "rewards/my_function/mean"}).context["trainers"]
    hits = [(item.name, line.pattern) for item in trainers for line in item.lines]
    assert ("trl", "rewards/{function}/mean") in hits
    nothing = client.get("/metrics-table/", {"q": "no such thing"})
    assert (nothing.context["count"], nothing.context["names"]) == (0, 0)
