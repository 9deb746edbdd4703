"""Append-only history: model, queryset and the database triggers that refuse every change.

Three layers say no: the model and its queryset, ``PROTECT`` on every foreign key from and to
history, and triggers on SQLite and PostgreSQL. SQLite drops the triggers of a table that a migration
rebuilds, so they are installed again after each migrate; ``missing_triggers`` and the system check
``workbench.E001`` say where one is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeVar

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error
from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

M = TypeVar("M", bound=models.Model)
MESSAGE = "append-only"
POSTGRES_FUNCTION = "workbench_refuse_change"


class AppendOnlyViolation(RuntimeError):
    """A change to history was asked for. Nothing has been changed; a correction is a new row."""


def _refuse(model: type[models.Model], operation: str) -> NoReturn:
    raise AppendOnlyViolation(f"{model._meta.label}: got {operation}, expected an insert ({MESSAGE})")


class AppendOnlyQuerySet(models.QuerySet[M]):
    """Inserts and reads; every other write raises ``AppendOnlyViolation``."""

    def update(self, **kwargs: Any) -> int:
        _refuse(self.model, "update")

    def _update(self, values: Any) -> int:
        _refuse(self.model, "update")

    def delete(self) -> tuple[int, dict[str, int]]:
        _refuse(self.model, "delete")

    def _raw_delete(self, using: str | None) -> int:
        _refuse(self.model, "delete")

    def bulk_update(self, objs: Iterable[M], fields: Iterable[str], batch_size: int | None = None) -> int:
        _refuse(self.model, "bulk_update")

    def update_or_create(self, *args: Any, **kwargs: Any) -> tuple[M, bool]:
        _refuse(self.model, "update_or_create")

    def bulk_create(
        self,
        objs: Iterable[M],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Iterable[str] | None = None,
        unique_fields: Iterable[str] | None = None,
    ) -> list[M]:
        """Insert rows; a conflict is always an ``IntegrityError``, never a replaced or dropped row."""
        if update_conflicts or ignore_conflicts or update_fields or unique_fields:
            _refuse(self.model, "bulk_create on conflict update or ignore")
        return super().bulk_create(objs, batch_size=batch_size)


class AppendOnlyModel(models.Model):
    """Base of history tables. Heads (mutable state) never inherit from it."""

    objects = models.Manager.from_queryset(AppendOnlyQuerySet)()

    class Meta:
        abstract = True
        base_manager_name = "objects"
        default_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert only; a row with the same key is an ``IntegrityError``, never an update."""
        if not self._state.adding or kwargs.get("force_update") or kwargs.get("update_fields") is not None:
            _refuse(type(self), "save of an existing row")
        kwargs["force_insert"] = True
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        _refuse(type(self), "delete")


def append_only_models(app_config: AppConfig | None = None) -> list[type[models.Model]]:
    """Concrete append-only models of one app, or of all installed apps, by table name."""
    found = app_config.get_models() if app_config else apps.get_models()
    return sorted(
        (model for model in found if issubclass(model, AppendOnlyModel) and not model._meta.proxy),
        key=lambda model: model._meta.db_table,
    )


def _unique_sets(model: type[models.Model]) -> list[list[str]]:
    """Column lists whose values at most one row may have."""
    meta = model._meta
    names = [[field.name] for field in meta.concrete_fields if field.unique]
    for constraint in meta.constraints:
        if isinstance(constraint, models.UniqueConstraint) and constraint.fields and constraint.condition is None:
            names.append(list(constraint.fields))
    columns = {field.name: str(field.column) for field in meta.concrete_fields}
    return [[columns[name] for name in group] for group in names]


def _sqlite_triggers(model: type[models.Model]) -> dict[str, str]:
    """Name -> statement. The insert guard refuses REPLACE on connections without recursive triggers too."""
    table = model._meta.db_table
    stop = f"SELECT RAISE(ABORT, '{MESSAGE}: {table}')"
    taken = " OR ".join(
        "(" + " AND ".join(f'"{column}" = NEW."{column}"' for column in columns) + ")"
        for columns in _unique_sets(model)
    )
    guard = f'WHEN EXISTS (SELECT 1 FROM "{table}" WHERE {taken})'
    return {
        f"{table}_no_update": f'CREATE TRIGGER "{table}_no_update" BEFORE UPDATE ON "{table}" BEGIN {stop}; END',
        f"{table}_no_delete": f'CREATE TRIGGER "{table}_no_delete" BEFORE DELETE ON "{table}" BEGIN {stop}; END',
        f"{table}_no_replace": (
            f'CREATE TRIGGER "{table}_no_replace" BEFORE INSERT ON "{table}" {guard} BEGIN {stop}; END'
        ),
    }


def _postgres_triggers(model: type[models.Model]) -> dict[str, str]:
    table = model._meta.db_table
    call = f"EXECUTE FUNCTION {POSTGRES_FUNCTION}()"
    return {
        f"{table}_no_change": (
            f'CREATE TRIGGER "{table}_no_change" BEFORE UPDATE OR DELETE ON "{table}" FOR EACH ROW {call}'
        ),
        f"{table}_no_truncate": (
            f'CREATE TRIGGER "{table}_no_truncate" BEFORE TRUNCATE ON "{table}" FOR EACH STATEMENT {call}'
        ),
    }


_POSTGRES_FUNCTION_SQL = f"""
CREATE OR REPLACE FUNCTION {POSTGRES_FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    RAISE EXCEPTION '{MESSAGE}: %', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$body$
"""


def _present(connection: BaseDatabaseWrapper, found: Sequence[type[models.Model]]) -> list[type[models.Model]]:
    tables = set(connection.introspection.table_names())
    return [model for model in found if model._meta.db_table in tables]


def _expected(connection: BaseDatabaseWrapper, model: type[models.Model]) -> dict[str, str]:
    if connection.vendor == "sqlite":
        return _sqlite_triggers(model)
    if connection.vendor == "postgresql":
        return _postgres_triggers(model)
    raise AppendOnlyViolation(f"database: got {connection.vendor}, expected sqlite or postgresql")


def install_triggers(connection: BaseDatabaseWrapper, found: Sequence[type[models.Model]] | None = None) -> None:
    """Create or replace the triggers of every append-only table that exists. Idempotent."""
    present = _present(connection, append_only_models() if found is None else found)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql" and present:
            cursor.execute(_POSTGRES_FUNCTION_SQL)
        for model in present:
            table = connection.ops.quote_name(model._meta.db_table)
            for name, statement in _expected(connection, model).items():
                target = "" if connection.vendor == "sqlite" else f" ON {table}"
                cursor.execute(f'DROP TRIGGER IF EXISTS "{name}"{target}')
                cursor.execute(statement)
                if connection.vendor == "postgresql":  # fires under session_replication_role = replica too
                    cursor.execute(f'ALTER TABLE {table} ENABLE ALWAYS TRIGGER "{name}"')


def drop_triggers(connection: BaseDatabaseWrapper, found: Sequence[type[models.Model]] | None = None) -> None:
    """Remove the triggers: for emptying a test database, never part of a product path."""
    with connection.cursor() as cursor:
        for model in _present(connection, append_only_models() if found is None else found):
            target = "" if connection.vendor == "sqlite" else f' ON "{model._meta.db_table}"'
            for name in _expected(connection, model):
                cursor.execute(f'DROP TRIGGER IF EXISTS "{name}"{target}')


def _installed(connection: BaseDatabaseWrapper) -> dict[str, str]:
    """Trigger name -> definition: the statement on SQLite, ``function/mode`` on PostgreSQL."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        else:
            cursor.execute(
                "SELECT t.tgname, p.proname || '/' || t.tgenabled::text FROM pg_trigger t"
                " JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid"
                " WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid)"
            )
        return dict(cursor.fetchall())


def missing_triggers(connection: BaseDatabaseWrapper) -> list[str]:
    """Names of triggers that are absent, disabled or not ours, of every append-only table that exists.

    The SQLite insert guard is compared by name only: its columns follow the model's unique
    constraints, and the migration that changes these runs before it can be written again.
    """
    installed, missing = _installed(connection), []
    for model in _present(connection, append_only_models()):
        for name, statement in _expected(connection, model).items():
            current = installed.get(name)
            if connection.vendor == "postgresql":
                holds = current == f"{POSTGRES_FUNCTION}/A"
            elif name.endswith("_no_replace"):
                holds = current is not None
            else:
                holds = current == statement
            if not holds:
                missing.append(name)
    return missing


def on_connection_created(sender: Any, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """SQLite: REPLACE fires DELETE triggers only where recursive triggers are on."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA recursive_triggers = ON")


def on_post_migrate(sender: Any, app_config: AppConfig, using: str, **kwargs: Any) -> None:
    """Install the triggers of the app that has just been migrated."""
    found = append_only_models(app_config)
    if found:
        install_triggers(connections[using], found)


def check_triggers(app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """System check ``workbench.E001``: every append-only table has its triggers."""
    return [
        Error(
            f"{alias}: got no usable trigger {name}, expected the append-only triggers",
            hint="Run manage.py migrate --skip-checks, which installs them again, then manage.py verify.",
            id="workbench.E001",
        )
        for alias in databases or ()
        for name in missing_triggers(connections[alias])
    ]


def check_protect(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """System check ``workbench.E002``: every foreign key from and to history is ``PROTECT``."""
    problems: list[CheckMessage] = []
    for model in append_only_models():
        outgoing = [field for field in model._meta.concrete_fields if field.remote_field]
        incoming = [relation.field for relation in model._meta.related_objects if hasattr(relation.field, "column")]
        for field in {*outgoing, *incoming}:
            if field.remote_field.on_delete is not models.PROTECT:
                problems.append(Error(f"{field}: got another on_delete, expected PROTECT", id="workbench.E002"))
    return sorted(problems, key=str)
