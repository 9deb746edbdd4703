"""Attacks on stored evidence: by SQL, and by forged records that carry a receipt of their own."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.links import withdraw_link
from evidence.actions.record import append, record_uid
from evidence.actions.stale import mark_changed
from evidence.attacks.attack import VERIFY, Attack, step
from evidence.attacks.world import PILOT, AttackWorld, notes_document
from evidence.models import (
    Claim,
    ClaimFigure,
    ClaimVersion,
    Excerpt,
    Figure,
    FigureInput,
    FigureVersion,
    NotesVersion,
    Review,
)
from evidence.notes.schema import normalise
from runs.models import Receipt
from workbench.contracts.canonical import canonical_bytes


def _common(world: AttackWorld, parent: Any, kind: str, key: str) -> dict[str, Any]:
    uid = record_uid(parent, kind, key)
    return {"uid": uid, "study": world.study, "actor": world.author, "at": world.later}


def rewritten_source(world: AttackWorld) -> None:
    """The held bytes of a source say another number."""
    version = world.source("pilot.md").current
    assert version is not None
    world.overwrite(version.sha256, PILOT.replace(b"92 were", b"95 were"))


def removed_source(world: AttackWorld) -> None:
    """The held bytes of a source are gone."""
    version = world.source("table.csv").current
    assert version is not None
    world.overwrite(version.sha256, None)


def claimed_as_verified(world: AttackWorld) -> None:
    """A source of which only a hash is known is shown as verified."""
    world.sql("UPDATE evidence_source SET state = 'verified' WHERE path = 'manuscript.tex'")


def claimed_as_held(world: AttackWorld) -> None:
    """Its version is said to be held."""
    world.sql("UPDATE evidence_sourceversion SET held = true WHERE held = false")


def renamed_source(world: AttackWorld) -> None:
    """A source gets the name of a better one."""
    world.sql("UPDATE evidence_source SET path = 'final.md' WHERE path = 'pilot.md'")


def swapped_excerpt(world: AttackWorld) -> None:
    """An excerpt quotes another sentence."""
    world.sql(
        "UPDATE evidence_excerpt SET text = %s, selector = %s WHERE key = 'nonzero'",
        "244 usable rows", '{"exact": "244 usable rows", "line": 3}',
    )  # fmt: skip


def forged_excerpt(world: AttackWorld) -> None:
    """An excerpt of words that the source does not hold, with a receipt."""
    version = world.source("pilot.md").current
    append(
        Excerpt(
            **_common(world, world.study.uid, "excerpt", "forged"), version=version, key="forged", form="quote",
            selector={"exact": "95 were nonzero", "prefix": "", "suffix": "", "line": 3}, kind="matched",
            text="95 were nonzero",
        )
    )  # fmt: skip


def edited_value(world: AttackWorld) -> None:
    """A figure's stored value becomes another."""
    world.sql("UPDATE evidence_figureversion SET value = '95' WHERE id = %s", world.figure("pilot.nonzero").current_id)


def _forged_version(world: AttackWorld, key: str, **changed: Any) -> None:
    """The next version of a figure, with a receipt, and the head on it."""
    figure = world.figure(key)
    row = copy.copy(figure.current)
    assert row is not None
    row.pk, row._state.adding = None, True
    for name, value in {
        **_common(world, figure.uid, "figure_version", "forged"),
        "number": row.number + 1,
        **changed,
    }.items():
        setattr(row, name, value)
    append(row)
    Figure.objects.filter(pk=figure.pk).update(current=FigureVersion.objects.get(uid=row.uid))


def forged_value(world: AttackWorld) -> None:
    """A version of a figure with a value that its excerpt does not hold, with a receipt."""
    _forged_version(world, "pilot.nonzero", value="95")


def filled_by_hand(world: AttackWorld) -> None:
    """A pending effect gets a value from nowhere, with a receipt."""
    _forged_version(world, "effect.main", value="0.31")


def pilot_in_effect_cell(world: AttackWorld) -> None:
    """The pending effect is bound to the pilot, past the checks and with a receipt."""
    excerpt = world.excerpt("nonzero")
    binding = {"type": "excerpt", "excerpt": "nonzero", "number": "92"}
    _forged_version(world, "effect.main", binding=binding, value="92", excerpt=excerpt, source_version=excerpt.version)
    Figure.objects.filter(key="effect.main").update(state=Figure.BOUND)


def constant_in_effect(world: AttackWorld) -> None:
    """The pending effect is derived with a typed constant, past the checks and with a receipt."""
    binding = {"type": "derivation", "expression": "x + 3", "figures": {"x": "pilot.nonzero"}}
    _forged_version(world, "effect.main", binding=binding, value="95")
    version = world.figure("effect.main").current
    assert version is not None
    FigureInput.objects.create(version=version, name="x", figure=world.figure("pilot.nonzero"))
    Figure.objects.filter(key="effect.main").update(state=Figure.BOUND)


def stale_derivation(world: AttackWorld) -> None:
    """An operand was bound anew; what is derived from it is made to look as if it still computed."""
    rebound_operand(world)
    world.sql("UPDATE evidence_figure SET state = %s WHERE state = %s", "bound", "drifted")


def rebound_operand(world: AttackWorld) -> None:
    """An operand is bound anew, and what is derived from it says at once that it has drifted."""
    version = world.source("pilot.md").current
    assert version is not None
    who: dict[str, Any] = {"by": world.author, "at": world.later}
    selector = {"exact": "17", "prefix": "took ", "suffix": ""}
    add_excerpt(world.study, version, "other", "quote", selector, **who)
    binding = {"type": "excerpt", "excerpt": "other", "number": "17"}
    bind_figure(world.study, "pilot.nonzero", binding, title_en="N", kind="mechanism", reason="another place", **who)


def older_version_current(world: AttackWorld) -> None:
    """A corrected figure shows its old version again."""
    old = world.figure("pilot.nonzero").current_id
    rebound_operand(world)
    world.sql("UPDATE evidence_figure SET current_id = %s WHERE key = 'pilot.nonzero'", old)


def other_operand(world: AttackWorld) -> None:
    """A derivation is said to use another figure."""
    other = world.figure("pilot.hours").pk
    world.sql("UPDATE evidence_figureinput SET figure_id = %s WHERE name = 'nonzero'", other)


def edited_claim(world: AttackWorld) -> None:
    """The words of a claim become others."""
    world.sql(
        "UPDATE evidence_claimversion SET text_en = %s WHERE text_en LIKE %s",
        "In every case [[pilot.rate]] of [[pilot.usable]] usable rows were nonzero.", "In the pilot%",
    )  # fmt: skip


def forged_claim(world: AttackWorld) -> None:
    """Words with a typed number beside the bound one, past the checks and with a receipt."""
    claim = world.claim("share")
    row = append(
        ClaimVersion(
            **_common(world, claim.uid, "claim_version", "forged"), claim=claim, number=2, kind="description",
            text_en="The rate was 0.95 ([[pilot.rate]]).",
        )
    )  # fmt: skip
    figure = world.figure("pilot.rate")
    assert figure.current is not None
    ClaimFigure.objects.create(version=row, language="en", ordinal=0, figure=figure, figure_version=figure.current)
    Claim.objects.filter(pk=claim.pk).update(current=row)


def other_token(world: AttackWorld) -> None:
    """A token of a claim shows another figure than it names."""
    hours = world.figure("pilot.hours")
    world.sql(
        "UPDATE evidence_claimfigure SET figure_id = %s, figure_version_id = %s WHERE ordinal = 1",
        hours.pk, hours.current_id,
    )  # fmt: skip


def raised_status(world: AttackWorld) -> None:
    """A disputed claim becomes supported."""
    world.sql("UPDATE evidence_claim SET status = 'supported' WHERE key = 'duration'")


def raised_cap(world: AttackWorld) -> None:
    """And its cap with it."""
    world.sql("UPDATE evidence_claim SET status = 'supported', cap = 'supported', disputed = false")


def forged_self_review(world: AttackWorld) -> None:
    """An author's acceptance of their own claim, called independent, with a receipt."""
    claim = world.claim("duration")
    append(
        Review(
            **_common(world, claim.uid, "review", "forged"), claim=claim, claim_version=claim.current,
            verdict="accept", reason="It is right.", looked_at=["quotation"], independence="independent",
        )
    )  # fmt: skip


def flipped_verdict(world: AttackWorld) -> None:
    """A dispute becomes an acceptance."""
    world.sql("UPDATE evidence_review SET verdict = 'accept' WHERE verdict = 'dispute'")


def deleted_review(world: AttackWorld) -> None:
    """A dispute is taken away."""
    world.sql("DELETE FROM evidence_review WHERE verdict = 'dispute'")


def deleted_review_and_receipt(world: AttackWorld) -> None:
    """A dispute is taken away, and its receipt with it."""
    receipt = Receipt.objects.get(subject_uid=world.review("duration").uid)
    deleted_review(world)
    world.sql("DELETE FROM runs_receipt WHERE id = %s", receipt.pk)


def hidden_withdrawal(world: AttackWorld) -> None:
    """A withdrawn link stands again."""
    withdraw_link(world.link("share"), reason="the wrong figure", by=world.author, at=world.later)
    world.sql("DELETE FROM evidence_linkwithdrawal")


def _marked(world: AttackWorld) -> None:
    uid = world.figure("pilot.usable").uid
    mark_changed("figure", uid, "recomputed to another value", by=world.author, at=world.later)


def cleared_flag(world: AttackWorld) -> None:
    """What is stale is shown as current."""
    _marked(world)
    world.sql("UPDATE evidence_claim SET stale = false")


def deleted_mark(world: AttackWorld) -> None:
    """The marks are taken away."""
    _marked(world)
    world.sql("DELETE FROM evidence_stalemark")


def edited_notes(world: AttackWorld) -> None:
    """The document of the notes page becomes another."""
    notes = NotesVersion.objects.get()
    world.overwrite(notes.document_sha256, b"{}")


def forged_notes(world: AttackWorld) -> None:
    """A page with a typed number, past the checks and with a receipt."""
    document = normalise(notes_document())
    document["sections"][3]["blocks"][0]["text"]["en"] = "Of all usable rows, 95 % were nonzero."
    sha256 = world.store.put(canonical_bytes(document))
    row = NotesVersion.objects.get()
    append(
        NotesVersion(
            **{**_common(world, world.study.uid, "notes_version", "forged"), "at": world.later + timedelta(days=1)},
            number=2, document_sha256=sha256, page_date=row.page_date, reason="clearer",
        )
    )  # fmt: skip


_RECORDS = step("check_records")
_EXCERPTS, _FIGURES, _CLAIMS = step("check_excerpts"), step("check_figures"), step("check_claims")

ATTACKS = (
    Attack("rewritten-source", "Held bytes of a source are rewritten", rewritten_source, VERIFY,
           (12, "evidence_sourceversion", "bytes"), step("check_sources")),
    Attack("rewritten-source-excerpt", "The same, seen from its excerpt", rewritten_source, VERIFY,
           (13, "evidence_excerpt", "text"), _EXCERPTS),
    Attack("rewritten-source-figure", "The same, seen from its figure", rewritten_source, VERIFY,
           (14, "evidence_figureversion", "value"), _FIGURES),
    Attack("removed-source", "Held bytes of a source are removed", removed_source, VERIFY,
           (12, "evidence_sourceversion", "bytes"), step("check_sources")),
    Attack("claimed-as-verified", "A claimed source is shown as verified", claimed_as_verified, VERIFY,
           (12, "evidence_source", "state"), step("check_sources")),
    Attack("claimed-as-held", "A claimed version is said to be held", claimed_as_held, VERIFY,
           (11, "evidence_sourceversion", "held"), _RECORDS),
    Attack("renamed-source", "A source under another name", renamed_source, VERIFY, (11, "evidence_source", "path"),
           _RECORDS),
    Attack("swapped-excerpt", "An excerpt quotes another sentence", swapped_excerpt, VERIFY,
           (11, "evidence_excerpt", "selector"), _RECORDS),
    Attack("forged-excerpt", "An excerpt of words that stand nowhere, with a receipt", forged_excerpt, VERIFY,
           (13, "evidence_excerpt", "text"), _EXCERPTS),
    Attack("edited-value", "A figure's stored value is edited", edited_value, VERIFY,
           (11, "evidence_figureversion", "value"), _RECORDS),
    Attack("forged-value", "A value that its excerpt does not hold, with a receipt", forged_value, VERIFY,
           (14, "evidence_figureversion", "value"), _FIGURES),
    Attack("constant-in-effect", "A typed constant in an effect's derivation, with a receipt", constant_in_effect,
           VERIFY, (14, "evidence_figureversion", "binding"), _FIGURES),
    Attack("filled-by-hand", "A pending effect filled by hand, with a receipt", filled_by_hand, VERIFY,
           (14, "evidence_figureversion", "value"), _FIGURES),
    Attack("pilot-in-effect-cell", "A pilot's number in an effect's cell, with a receipt", pilot_in_effect_cell,
           VERIFY, (14, "evidence_figureversion", "kind"), _FIGURES),
    Attack("stale-derivation", "A derivation that keeps its value when an operand changes", stale_derivation, VERIFY,
           (14, "evidence_figure", "state"), _FIGURES),
    Attack("older-version-current", "A corrected figure shows its old version", older_version_current, VERIFY,
           (11, "evidence_figure", "current_id"), _RECORDS),
    Attack("other-operand", "A derivation that uses another figure", other_operand, VERIFY,
           (11, "evidence_figureinput", "figure"), _RECORDS),
    Attack("edited-claim-text", "The words of a claim are edited", edited_claim, VERIFY,
           (11, "evidence_claimversion", "text_en"), _RECORDS),
    Attack("forged-claim", "A claim with a typed number, with a receipt", forged_claim, VERIFY,
           (15, "evidence_claimversion", "text_en"), _CLAIMS),
    Attack("other-token", "A claim's token shows another figure", other_token, VERIFY,
           (15, "evidence_claimfigure", "text_en"), _CLAIMS),
    Attack("raised-status", "A status is raised in its row", raised_status, VERIFY, (15, "evidence_claim", "status"),
           _CLAIMS),
    Attack("raised-cap", "A status and its cap are raised", raised_cap, VERIFY, (15, "evidence_claim", "cap"), _CLAIMS),
    Attack("forged-self-review", "An author's acceptance, with a receipt", forged_self_review, VERIFY,
           (15, "evidence_review", "actor"), _CLAIMS),
    Attack("flipped-verdict", "A dispute becomes an acceptance", flipped_verdict, VERIFY,
           (11, "evidence_review", "verdict"), _RECORDS),
    Attack("deleted-review", "A dispute is deleted", deleted_review, VERIFY, (11, "evidence_review", "uid"), _RECORDS),
    Attack("deleted-review-and-receipt", "A dispute is deleted with its receipt", deleted_review_and_receipt, VERIFY,
           (1, "runs_receipt", "seq"), step("check_chains")),
    Attack("hidden-withdrawal", "A withdrawn link stands again", hidden_withdrawal, VERIFY,
           (11, "evidence_linkwithdrawal", "uid"), _RECORDS),
    Attack("cleared-stale-flag", "What is stale is shown as current", cleared_flag, VERIFY,
           (11, "evidence_claim", "stale"), _RECORDS),
    Attack("deleted-mark", "Marks of what is stale are deleted", deleted_mark, VERIFY,
           (11, "evidence_stalemark", "uid"), _RECORDS),
    Attack("edited-notes", "The document of the notes page is replaced", edited_notes, VERIFY,
           (16, "evidence_notesversion", "document_sha256"), step("check_notes")),
    Attack("forged-notes", "A notes page with a typed number, with a receipt", forged_notes, VERIFY,
           (16, "evidence_notesversion", "sections.3"), step("check_notes")),
)  # fmt: skip
