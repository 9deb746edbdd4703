"""Tables made at once stand as those made one by one, and a table of somebody else's is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps.registry import Apps
from django.db import connection, migrations, models
from django.db.migrations.state import ProjectState

from workbench.tables import CreateTables

ID = ("id", models.BigAutoField(primary_key=True))


def _parts() -> list[Any]:
    """Two tables that point at each other, with an index and a constraint that come later."""
    return [
        migrations.CreateModel("Shelf", [ID]),
        migrations.CreateModel(
            "Book",
            [
                ID,
                ("title", models.TextField()),
                ("shelf", models.ForeignKey("trial.Shelf", models.PROTECT)),
                ("beside", models.ManyToManyField("trial.Book")),
            ],
        ),
        migrations.AddField("shelf", "first", models.ForeignKey("trial.Book", models.PROTECT, null=True)),
        migrations.AddIndex("book", models.Index(fields=["title"], name="trial_title")),
        migrations.AddConstraint("book", models.CheckConstraint(condition=~models.Q(title=""), name="trial_named")),
    ]


def _schema() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE tbl_name LIKE 'trial_%' AND sql IS NOT NULL ORDER BY name")
        return [row[0] for row in cursor.fetchall()]


@pytest.fixture
def applied(transactional_db: None) -> Iterator[Any]:
    """A function that applies operations to an empty state and returns (schema, state); all is dropped after each."""

    def apply(operations: list[Any]) -> tuple[list[str], ProjectState]:
        migration = type("Migration", (migrations.Migration,), {"operations": operations})("0001_trial", "trial")
        empty = ProjectState()
        assert isinstance(empty.apps, Apps)  # rendered, as it is when Django applies a migration
        with connection.schema_editor(atomic=True) as editor:
            state = migration.apply(empty.clone(), editor)
        found = _schema()
        with connection.schema_editor(atomic=True) as editor:
            migration.unapply(empty.clone(), editor)
        assert _schema() == []
        return found, state

    yield apply


def test_tables_made_at_once_equal_those_made_one_by_one(applied: Any) -> None:
    one_by_one, after_parts = applied(_parts())
    at_once, after_all = applied([CreateTables(_parts())])
    assert at_once == one_by_one
    assert len(at_once) > 4
    assert {key: set(value.fields) for key, value in after_all.models.items()} == {
        key: set(value.fields) for key, value in after_parts.models.items()
    }


def test_a_table_that_it_does_not_create_is_refused() -> None:
    with pytest.raises(ValueError, match="AddField: got model run, expected one of Shelf, Book"):
        CreateTables([*_parts(), migrations.AddField("run", "note", models.TextField())])


def test_what_it_does_is_said() -> None:
    operation = CreateTables(_parts())
    assert operation.describe() == "Create tables Shelf, Book"
    assert operation.deconstruct() == ("CreateTables", [operation.parts], {})
