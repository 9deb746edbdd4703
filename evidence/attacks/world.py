"""The world that attacks are tried on: a closed study with captures and metrics, and evidence that stands on it.

Everything is made by the product's own actions. Nothing in it was trained: its records are written by rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from evidence.actions.claims import add_claim
from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.links import add_link
from evidence.actions.notes import save_notes
from evidence.actions.reviews import review
from evidence.actions.signing import anchor_now, exported
from evidence.actions.versions import add_source
from evidence.attacks import studies
from evidence.models import Claim, Excerpt, Figure, Link, Review, Source
from evidence.notes.shapes import CARD_ROLES, SCHEMA, SECTIONS
from runs.actions.actors import person_actor
from runs.actions.closure import close_execution
from runs.actions.tracking import create_logged_run, set_status
from runs.actions.transitions import move_run
from runs.metrics.store import LoggedPoint, log_points
from runs.models import Actor, Receipt, Study, User
from workbench.blobs import BlobStore
from workbench.contracts.canonical import sha256_hex
from workbench.db import drop_triggers

AT = studies.AT
PILOT = (
    b"# Pilot\n\nOf 244 usable rows 92 were nonzero.\n\nThe pilot is a mechanism check. The pilot is small.\n"
    b"The run took 17 hours on one machine.\n"
)
TABLE = b"arm,n,of\nvanilla,12,27\nmasked,14,27\n"
METRICS = b'{"tokens": {"generated": 1540, "prompt": 9120}, "rate": 0.62}\n'
ELSEWHERE = sha256_hex(b"a manuscript whose bytes lie elsewhere")


@dataclass
class AttackWorld:
    """What was made. ``kept``: an export of the signed heads, as somebody else keeps it."""

    run: studies.World
    store: BlobStore
    study: Study
    author: Actor
    reviewer: Actor
    reader: Actor
    closing: Receipt
    kept: dict[str, Any]
    later: datetime
    changed: dict[str, bytes | None] = field(default_factory=dict)

    def source(self, path: str) -> Source:
        """A source by its path."""
        return Source.objects.select_related("current").get(study=self.study, path=path)

    def figure(self, key: str) -> Figure:
        """A figure by its key."""
        return Figure.objects.select_related("current").get(study=self.study, key=key)

    def excerpt(self, key: str) -> Excerpt:
        """An excerpt by its key."""
        return Excerpt.objects.get(study=self.study, key=key)

    def claim(self, key: str) -> Claim:
        """A claim by its key."""
        return Claim.objects.select_related("current", "study").get(study=self.study, key=key)

    def link(self, key: str) -> Link:
        """The first link of a claim."""
        return Link.objects.filter(claim__study=self.study, claim__key=key).order_by("pk")[0]

    def review(self, key: str) -> Review:
        """The first review of a claim."""
        return Review.objects.filter(claim__study=self.study, claim__key=key).order_by("pk")[0]

    def sql(self, statement: str, *values: Any) -> None:
        """Change history as whoever can write the database file: triggers dropped, foreign keys not looked at."""
        drop_triggers(connection)
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute("PRAGMA defer_foreign_keys = ON")
            cursor.execute(statement, values)
            if cursor.rowcount < 1:
                raise AssertionError(f"{statement}: changed no row")

    def overwrite(self, sha256: str, data: bytes | None) -> None:
        """Write other bytes under a blob's name, or take the file away; ``restore`` puts back what was there."""
        path = self.store.path(sha256)
        self.changed.setdefault(sha256, path.read_bytes())
        path.unlink()
        if data is not None:
            path.write_bytes(data)

    def flip(self, sha256: str) -> None:
        """Change one bit in the middle of a blob."""
        data = bytearray(self.store.path(sha256).read_bytes())
        data[len(data) // 2] ^= 1
        self.overwrite(sha256, bytes(data))

    def restore(self) -> None:
        """Put back every blob that was changed."""
        for sha256, data in self.changed.items():
            path = self.store.path(sha256)
            path.unlink(missing_ok=True)
            if data is not None:
                path.write_bytes(data)
        self.changed.clear()


def _who(by: Actor, at: datetime) -> dict[str, Any]:
    return {"by": by, "at": at}


def _person(name: str) -> Actor:
    user, _made = User.objects.get_or_create(username=name)
    return person_actor(user)


def _closed_run(store: BlobStore) -> studies.World:
    """Two training groups, one update, an evaluation of both test tasks, a run from elsewhere; closed."""
    made = studies.build_world(store=store, groups=2, updates=1)
    for ordinal in (0, 1):
        studies.add_group(made, purpose="evaluate", condition="stress", split="test", ordinal=ordinal)
    logged = create_logged_run(made.study, "logged", by=made.actor, at=AT)
    points = [LoggedPoint("loss", 1.0 / (step + 1), step, step) for step in range(5)]
    log_points(logged.run, points, source="api", actor=made.actor, at=AT)
    set_status(logged.run, "finished", by=made.actor, at=AT + timedelta(seconds=1))
    move_run(made.run, "completed", reason="every batch done", actor=made.actor, at=AT)
    close_execution(made.execution, actor=made.actor, at=AT + timedelta(minutes=1))
    return made


def build(store: BlobStore) -> AttackWorld:
    """Build the world. Blobs go to ``store``, which must be the one of the settings."""
    assert store.root == BlobStore(settings.BLOB_ROOT).root
    made = _closed_run(store)
    author, reviewer, reader = _person("author"), _person("reviewer"), _person("reader")
    at = AT + timedelta(minutes=2)
    closing = Receipt.objects.get(kind="execution.closed")
    world = AttackWorld(made, store, made.study, author, reviewer, reader, closing, {}, at + timedelta(hours=1))
    _evidence(world, at)
    _claims(world, at)
    save_notes(world.study, notes_document(), by=author, at=at)
    world.kept = exported(anchor_now(at=at))
    return world


def _evidence(world: AttackWorld, at: datetime) -> None:
    study, who = world.study, _who(world.author, at)
    pilot = add_source(study, "pilot.md", PILOT, origin="upload", reference="R1", **who)
    add_source(study, "table.csv", TABLE, origin="upload", reference="R2", **who)
    add_source(study, "metrics.json", METRICS, origin="upload", reference="R3", **who)
    add_source(study, "manuscript.tex", None, sha256=ELSEWHERE, origin="imported", reference="R4", **who)
    for key, exact in (("usable", "244 usable rows"), ("nonzero", "92 were nonzero"), ("hours", "took 17 hours")):
        add_excerpt(study, pilot, key, "quote", {"exact": exact, "prefix": "", "suffix": ""}, **who)
    for key, number in (("usable", "244"), ("nonzero", "92"), ("hours", "17")):
        binding = {"type": "excerpt", "excerpt": key, "number": number}
        kind = "cost" if key == "hours" else "mechanism"
        bind_figure(study, f"pilot.{key}", binding, title_en=f"Pilot: {key}", kind=kind, **who)
    rate = {
        "type": "derivation",
        "expression": "nonzero / usable",
        "figures": {"nonzero": "pilot.nonzero", "usable": "pilot.usable"},
    }
    bind_figure(
        study, "pilot.rate", rate, title_en="Nonzero of usable", kind="mechanism", style="percent", digits=1, **who
    )
    cell = {"type": "cell", "source": "table.csv", "column": "n", "key_column": "arm", "key": "masked"}
    bind_figure(study, "table.masked", cell, title_en="Masked", kind="mechanism", **who)
    pointer = {"type": "pointer", "source": "metrics.json", "pointer": "/tokens/generated"}
    bind_figure(study, "cost.tokens", pointer, title_en="Generated tokens", kind="cost", unit="tokens", **who)
    receipt = {"type": "receipt", "sha256": world.closing.sha256, "pointer": "/body/counts/items"}
    bind_figure(study, "closure.items", receipt, title_en="Items in the closure", kind="environment", **who)
    waiting = {"type": "pending", "fills": {"words_en": "a closed execution with a registered endpoint"}}
    bind_figure(study, "effect.main", waiting, title_en="Main effect", kind="effect", **who)


def _claims(world: AttackWorld, at: datetime) -> None:
    study, who = world.study, _who(world.author, at)
    add_claim(
        study, "share", text_en="In the pilot [[pilot.rate]] of [[pilot.usable]] usable rows were nonzero.",
        kind="description", **who,
    )  # fmt: skip
    add_link(world.claim("share"), figure=world.figure("pilot.rate"), relation="supports", **who)
    add_claim(study, "duration", text_en="The pilot took [[pilot.hours]] hours.", kind="cost", **who)
    add_link(world.claim("duration"), excerpt=world.excerpt("hours"), relation="supports", **who)
    looked = ("quotation", "figures", "derivations")
    later: dict[str, Any] = {"looked_at": looked, **_who(world.reviewer, at + timedelta(minutes=1))}
    review(world.claim("share"), verdict="accept", reason="The rows are as the source says.", **later)
    review(world.claim("duration"), verdict="dispute", reason="Whether the machine was idle is not said.", **later)


def notes_document() -> dict[str, Any]:
    """A small page: every section, one of them with a sentence, a figure and a claim."""

    def words(text: str) -> dict[str, str]:
        return {"en": text, "zh": ""}

    blocks = [
        {"type": "paragraph", "text": words("Of [[pilot.usable]] usable rows, [[pilot.rate]] were nonzero."),
         "sources": ["R1"]},
        {"type": "figures", "items": [{"figure": "table.masked"}]},
        {"type": "claims", "items": ["share", "duration"]},
    ]  # fmt: skip
    return {
        "schema": SCHEMA, "study": "demo", "page_date": "2030-01-02", "title": words("Demo"),
        "state": words("A small world."), "cards": [{"role": role, "text": words(role)} for role in CARD_ROLES],
        "sections": [
            {"id": name, "title": words(name), "blocks": blocks if name == "results" else []} for name in SECTIONS
        ],
    }  # fmt: skip
