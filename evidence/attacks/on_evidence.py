"""Attacks by the front door: what an author, a reviewer or a script may ask for and is refused."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any

from evidence.actions.claims import add_claim, lower_claim
from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.links import add_link
from evidence.actions.notes import save_notes
from evidence.actions.reviews import answer, review
from evidence.actions.stale import mark_changed, open_marks, settle
from evidence.actions.versions import add_source
from evidence.attacks.attack import REFUSED, Attack, Guard
from evidence.attacks.world import PILOT, AttackWorld, notes_document
from evidence.binding.expressions import Quantity
from evidence.binding.figures import Resolved
from runs.actions.actors import service_actor
from workbench.contracts.canonical import sha256_hex

WORDS = (Guard("evidence.actions.claims:check_claim", []),)


def _author(world: AttackWorld) -> dict[str, Any]:
    return {"by": world.author, "at": world.later}


def _claim(world: AttackWorld, text: str, kind: str = "description", **more: Any) -> None:
    add_claim(world.study, "attack", text_en=text, kind=kind, **more, **_author(world))


def prose_beside_binding(world: AttackWorld) -> None:
    """The sentence says 0.95, the figure beside it another value."""
    _claim(world, "The rate was 0.95 ([[pilot.rate]]).")


def number_in_words(world: AttackWorld) -> None:
    """A number that no digit gives away."""
    _claim(world, "It is twice as good in nine of ten cases.")


def chinese_number(world: AttackWorld) -> None:
    """The same in Chinese."""
    add_claim(world.study, "attack", text_zh="提高了两倍。", kind="description", **_author(world))


def unknown_figure(world: AttackWorld) -> None:
    """A token of a figure that does not exist."""
    _claim(world, "The rate was [[pilot.invented]].")


def pilot_as_effect(world: AttackWorld) -> None:
    """A number of the pilot is bound as an effect."""
    binding = {"type": "excerpt", "excerpt": "nonzero", "number": "92"}
    bind_figure(world.study, "effect.pilot", binding, title_en="Effect", kind="effect", **_author(world))


def pilot_fills_effect(world: AttackWorld) -> None:
    """The pending effect is filled from the pilot by a derivation."""
    binding = {"type": "derivation", "expression": "x", "figures": {"x": "pilot.nonzero"}}
    why: dict[str, Any] = {"reason": "the pilot shows it"}
    bind_figure(world.study, "effect.main", binding, title_en="Effect", kind="effect", **why, **_author(world))


def typed_value(world: AttackWorld) -> None:
    """A number that the excerpt does not hold."""
    binding = {"type": "excerpt", "excerpt": "nonzero", "number": "95"}
    bind_figure(world.study, "pilot.better", binding, title_en="Better", kind="mechanism", **_author(world))


def part_of_number(world: AttackWorld) -> None:
    """The 44 in 244."""
    binding = {"type": "excerpt", "excerpt": "usable", "number": "44"}
    bind_figure(world.study, "pilot.part", binding, title_en="Part", kind="mechanism", **_author(world))


def division_by_zero(world: AttackWorld) -> None:
    """A rate without cases."""
    figures = {"a": "pilot.nonzero", "b": "pilot.usable"}
    binding = {"type": "derivation", "expression": "a / (b - b)", "figures": figures}
    bind_figure(world.study, "pilot.zero", binding, title_en="Zero", kind="mechanism", **_author(world))


def code_in_derivation(world: AttackWorld) -> None:
    """An expression that would run code."""
    binding = {"type": "derivation", "expression": "__import__('os').getpid()", "figures": {"a": "pilot.nonzero"}}
    bind_figure(world.study, "pilot.code", binding, title_en="Code", kind="mechanism", **_author(world))


def circle(world: AttackWorld) -> None:
    """A figure that rests on itself."""
    binding = {"type": "derivation", "expression": "r", "figures": {"r": "pilot.rate"}}
    why: dict[str, Any] = {"reason": "round and round"}
    bind_figure(world.study, "pilot.nonzero", binding, title_en="N", kind="mechanism", **why, **_author(world))


def quotation_twice(world: AttackWorld) -> None:
    """A quotation that stands at two places."""
    version = world.source("pilot.md").current
    assert version is not None
    selector = {"exact": "The pilot is", "prefix": "", "suffix": ""}
    add_excerpt(world.study, version, "twice", "quote", selector, **_author(world))


def quotation_nowhere(world: AttackWorld) -> None:
    """A quotation that stands nowhere."""
    version = world.source("pilot.md").current
    assert version is not None
    selector = {"exact": "Of 244 usable rows 244 were nonzero", "prefix": "", "suffix": ""}
    add_excerpt(world.study, version, "nowhere", "quote", selector, **_author(world))


def other_bytes_as_same(world: AttackWorld) -> None:
    """Bytes that are not those of the hash that is given with them."""
    version = world.source("pilot.md").current
    assert version is not None
    other = b"Other rows."
    add_source(world.study, "copy.md", other, origin="upload", sha256=version.sha256, **_author(world))


def silent_replacement(world: AttackWorld) -> None:
    """Bytes of a source replaced without a word."""
    add_source(world.study, "pilot.md", b"Of 244 usable rows 240 were nonzero.", origin="upload", **_author(world))


def equivalence_without_interval(world: AttackWorld) -> None:
    """Equivalence, where no plan registered an interval."""
    _claim(world, "Both arms are equivalent.", "equivalence")


def improvement_in_words(world: AttackWorld) -> None:
    """An improvement under the name of a description."""
    _claim(world, "The method significantly improves the result.")


def pilot_in_effect_claim(world: AttackWorld) -> None:
    """A claim of an effect that shows a mechanism figure."""
    _claim(world, "No regression was observed: [[pilot.rate]].", "no_regression")


def raised_by_hand(world: AttackWorld) -> None:
    """A disputed claim is set to supported."""
    lower_claim(world.claim("duration"), "supported", reason="it is obvious", **_author(world))


def pilot_supports_effect(world: AttackWorld) -> None:
    """A mechanism figure is linked as support of an effect."""
    _claim(world, "No regression was observed.", "no_regression")
    add_link(world.claim("attack"), figure=world.figure("pilot.rate"), relation="supports", **_author(world))


def self_review(world: AttackWorld) -> None:
    """An author accepts their own claim."""
    review(
        world.claim("duration"), verdict="accept", reason="I wrote it.", looked_at=["quotation"], by=world.author,
        at=world.later,
    )  # fmt: skip


def _derived_claim(world: AttackWorld, first: dict[str, Any]) -> None:
    """The reader binds ``first``; the author derives twice from it, claims the result, and the reader accepts."""
    reader: dict[str, Any] = {"by": world.reader, "at": world.later}
    rows: dict[str, Any] = {"kind": "mechanism"}
    bind_figure(world.study, "deep.first", first, title_en="First", **rows, **reader)
    for key, operand in (("deep.second", "deep.first"), ("deep.third", "deep.second")):
        binding = {"type": "derivation", "expression": "x - y", "figures": {"x": "pilot.usable", "y": operand}}
        bind_figure(world.study, key, binding, title_en=key, **rows, **_author(world))
    _claim(world, "In the pilot [[deep.third]] rows were left.")
    looked = ["figures", "derivations"]
    review(world.claim("attack"), verdict="accept", reason="It computes.", looked_at=looked, **reader)


def operand_review(world: AttackWorld) -> None:
    """Whoever bound a figure accepts a claim on what is derived from it, two steps on."""
    _derived_claim(world, {"type": "excerpt", "excerpt": "nonzero", "number": "92"})


def constant_review(world: AttackWorld) -> None:
    """Whoever typed a constant into a derivation accepts a claim on what is derived from it."""
    _derived_claim(world, {"type": "derivation", "expression": "x + 3", "figures": {"x": "pilot.nonzero"}})


def review_without_look(world: AttackWorld) -> None:
    """An acceptance that looked at nothing."""
    review(
        world.claim("duration"), verdict="accept", reason="Looks good.", looked_at=[], by=world.reader, at=world.later
    )


def own_answer(world: AttackWorld) -> None:
    """A reviewer answers their own dispute."""
    answer(world.review("duration"), "I take it back.", by=world.reviewer, at=world.later)


def service_confirms(world: AttackWorld) -> None:
    """A program confirms what is stale."""
    mark_changed("figure", world.figure("pilot.rate").uid, "recomputed", by=world.author, at=world.later)
    mark = open_marks(world.study).first()
    assert mark is not None
    settle(mark, "confirmed", "checked by a script", by=service_actor("script"), at=world.later + timedelta(minutes=1))


def number_in_notes(world: AttackWorld) -> None:
    """A number typed into the page."""
    document = notes_document()
    document["sections"][3]["blocks"].append({"type": "paragraph", "text": {"en": "In fact it was 95 %.", "zh": ""}})
    save_notes(world.study, document, reason="clearer", **_author(world))


_NO_TRACE = Guard("evidence.actions.notes:_said", [])
_OWN = Guard("evidence.actions.reviews:_must_have_no_part", [])
_VALUE = Guard("evidence.binding.figures:evaluate", Quantity(Fraction(1)))
_GRAMMAR = (Guard("evidence.binding.bindings:parse"), Guard("evidence.binding.bindings:names", {"a"}), _VALUE)
_IDENTITY = (Guard("evidence.actions.versions:_identity", (sha256_hex(PILOT), len(PILOT))),)
_REASON = (Guard("evidence.actions.versions:REASON_LEAST", 0, plain=True),)
_KIND = Guard("evidence.actions.figures:_check_kind")

ATTACKS = (
    Attack("prose-beside-binding", "A sentence says 0.95 beside a figure of another value", prose_beside_binding,
           REFUSED, "got '0.95'", WORDS),
    Attack("number-in-words", "A number in words", number_in_words, REFUSED, "bind the number", WORDS),
    Attack("number-in-chinese", "A number in Chinese words", chinese_number, REFUSED, "bind the number", WORDS),
    Attack("unknown-figure", "A token of a figure that does not exist", unknown_figure, REFUSED,
           "expected the key of a figure", (*WORDS, Guard("evidence.actions.claims:_bind_words"))),
    Attack("pilot-as-effect", "A pilot's number bound as an effect", pilot_as_effect, REFUSED,
           "expected endpoint or cell_rate of a closed execution", (_KIND,)),
    Attack("pilot-fills-effect", "A pending effect filled from the pilot", pilot_fills_effect, REFUSED,
           "never fills an effect cell", (_KIND,)),
    Attack("typed-value", "A number that the quotation does not hold", typed_value, REFUSED,
           "expected a number as it is written there", (Guard("evidence.binding.figures:number_in", 0),)),
    Attack("part-of-a-number", "Digits inside another number", part_of_number, REFUSED,
           "expected a number as it is written there", (Guard("evidence.binding.figures:number_in", 0),)),
    Attack("division-by-zero", "A rate without cases", division_by_zero, REFUSED, "got a divisor of 0",
           (_VALUE,)),
    Attack("code-in-derivation", "A derivation that would run code", code_in_derivation, REFUSED,
           "expected numbers, figures", _GRAMMAR),
    Attack("derivation-in-a-circle", "A figure that rests on itself", circle, REFUSED, "got a circle",
           (Guard("evidence.binding.figures:Resolver.of_figure", Resolved(Fraction(1))),)),
    Attack("quotation-twice", "A quotation that stands at two places", quotation_twice, REFUSED, "expected exactly one",
           (Guard("evidence.actions.excerpts:find_in", ("The pilot is", None)),)),
    Attack("quotation-nowhere", "A quotation that stands nowhere", quotation_nowhere, REFUSED, "expected exactly one",
           (Guard("evidence.actions.excerpts:find_in", ("Of 244 usable rows", None)),)),
    Attack("other-bytes", "Bytes under a hash that is not theirs", other_bytes_as_same, REFUSED,
           "the hash of the bytes that were given", _IDENTITY),
    Attack("silent-replacement", "A source replaced without a reason", silent_replacement, REFUSED,
           "expected why these bytes replace version", _REASON),
    Attack("equivalence-without-interval", "Equivalence without a registered interval", equivalence_without_interval,
           REFUSED, "interval", WORDS),
    Attack("improvement-in-words", "An improvement called a description", improvement_in_words, REFUSED, "improve",
           WORDS),
    Attack("pilot-in-effect-claim", "A mechanism figure in a claim of an effect", pilot_in_effect_claim, REFUSED,
           "expected an effect", WORDS),
    Attack("raised-by-hand", "A status raised above its cap", raised_by_hand, REFUSED, "expected at most",
           (Guard("evidence.actions.claims:rank", 0),)),
    Attack("pilot-supports-effect", "A mechanism figure linked as support of an effect", pilot_supports_effect,
           REFUSED, "expected an effect", (Guard("evidence.actions.links:_must_reach"),)),
    Attack("self-review", "An author accepts their own claim", self_review, REFUSED, "expected somebody who wrote none",
           (_OWN,)),
    Attack("operand-review", "A claim accepted by whoever bound what its figure is derived from", operand_review,
           REFUSED, "the binding of figure deep.first, from which another is derived", (_OWN,)),
    Attack("constant-review", "A claim accepted by whoever typed a constant under its figure", constant_review,
           REFUSED, "the binding of figure deep.first, from which another is derived", (_OWN,)),
    Attack("review-without-look", "An acceptance that looked at nothing", review_without_look, REFUSED,
           "say what you looked at", (Guard("evidence.actions.reviews:_looked_at", []),)),
    Attack("own-answer", "A reviewer answers their own dispute", own_answer, REFUSED, "expected an author",
           (Guard("evidence.actions.reviews:_must_be_of_another"),)),
    Attack("service-confirms", "A program confirms what is stale", service_confirms, REFUSED, "only people confirm",
           (Guard("evidence.actions.stale:_must_be_person"),)),
    Attack("number-in-notes", "A number typed into the notes page", number_in_notes, REFUSED, "expected", (_NO_TRACE,)),
)  # fmt: skip
