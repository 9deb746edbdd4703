"""A migration operation that creates many tables at once: a first start is quicker by the rendering that it saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.migrations.operations import (
    AddConstraint,
    AddField,
    AddIndex,
    CreateModel,
)
from django.db.migrations.operations.base import Operation

Part = CreateModel | AddField | AddIndex | AddConstraint


class CreateTables(Operation):
    """``parts`` in the order in which they were made; each table is created once, as it stands after the last part.

    Django renders every related model again after each part, which is quadratic in the number of tables.
    Here the state takes all parts before anything is rendered. The autodetector sees the same state as with
    the parts alone. Raises ``ValueError`` where a part changes a table that this operation does not create.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = list(parts)
        self.tables = [part.name for part in self.parts if isinstance(part, CreateModel)]
        known = {name.lower() for name in self.tables}
        for part in self.parts:
            name = part.name if isinstance(part, CreateModel) else part.model_name
            if name.lower() not in known:
                raise ValueError(f"{type(part).__name__}: got model {name}, expected one of {', '.join(self.tables)}")

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        """As Django's operations: what makes an equal one."""
        return type(self).__qualname__, [self.parts], {}

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Apply every part to a state without rendered models; they are rendered once, when next asked for."""
        state.__dict__.pop("apps", None)
        for part in self.parts:
            part.state_forwards(app_label, state)

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Create the tables in order; foreign keys to later ones are added by the editor at the end."""
        for name in self.tables:
            model = to_state.apps.get_model(app_label, name)
            if self.allow_migrate_model(schema_editor.connection.alias, model):
                schema_editor.create_model(model)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Drop the tables, the last first."""
        for name in reversed(self.tables):
            model = from_state.apps.get_model(app_label, name)
            if self.allow_migrate_model(schema_editor.connection.alias, model):
                schema_editor.delete_model(model)

    def describe(self) -> str:
        """As shown by ``migrate --plan``."""
        return f"Create tables {', '.join(self.tables)}"
