"""The form that binds a figure: its fields, and the binding that they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.utils.translation import gettext_lazy as _

from evidence.binding.closed import QUANTITIES
from evidence.binding.expressions import names, parse
from evidence.models import Excerpt, Figure, FigureVersion, Source
from evidence.presenters.chips import KINDS, TYPES
from runs.access import EVIDENCE_WRITE, Principal, studies_with
from runs.errors import DomainError
from runs.models import PlanVersion, Study
from runs.presenters.evaluation import OUTCOMES
from workbench.contracts.errors import ContractError

OFFERED = 500


@dataclass(frozen=True)
class Field:
    """One field of a type: ``options``: key of the offered values; ``help``: what it takes."""

    name: str
    word: Any
    help: Any = ""
    options: str = ""
    wide: bool = False


TYPE_FIELDS: dict[str, tuple[Field, ...]] = {
    "excerpt": (
        Field(
            "excerpt",
            _("excerpt"),
            _("key of an excerpt of this study; one is taken on the page of its source"),
            "excerpts",
        ),
        Field("number", _("number"), _("as it is written there: 2,384 or 37.7 %")),
        Field("occurrence", _("occurrence"), _("from 1, where the number stands there several times")),
    ),
    "pointer": (
        Field("source", _("source"), _("path of a source whose bytes are held"), "sources"),
        Field("pointer", _("JSON pointer"), _("/counts/usable, /list/0")),
    ),
    "cell": (
        Field("source", _("source"), _("path of a table whose bytes are held"), "sources"),
        Field("column", _("column"), _("name in the header")),
        Field("key_column", _("key column"), _("column that names the row")),
        Field("row", _("row"), _("what the key column holds in that row, and in no other")),
    ),
    "derivation": (
        Field("expression", _("expression"), _("nonzero / usable; + - * / ( ) sum mean min max count"), wide=True),
        Field("operands", _("figures"), _("one line each: nonzero = pilot.nonzero"), wide=True),
    ),
    "receipt": (
        Field("sha256", _("hash of the receipt"), _("all of its digits")),
        Field("pointer", _("JSON pointer"), _("/body/counts/items")),
    ),
    "endpoint": (
        Field("plan_version", _("frozen plan"), _("its execution has to be closed"), "plans"),
        Field("endpoint_id", _("endpoint"), _("as the plan registers it")),
        Field("quantity", _("quantity"), "", "quantities"),
        Field("arms", _("arms"), _("separated by commas, where the endpoint covers several")),
    ),
    "cell_rate": (
        Field("plan_version", _("frozen plan"), _("its execution has to be closed"), "plans"),
        Field("checkpoint", _("checkpoint"), _("an arm, arm@seed, parent, or the checkpoint's uid")),
        Field("condition", _("condition"), _("standard, stress")),
        Field("split", _("split"), _("test, validation, out_of_distribution")),
        Field("outcome", _("outcome"), "", "outcomes"),
        Field("part", _("part"), _("nothing for the rate, n or of for one of its counts"), "parts"),
    ),
    "pending": (
        Field("plan", _("plan"), _("slug of the plan whose endpoint fills it"), "slugs"),
        Field("endpoint_id", _("endpoint"), _("as the plan registers it")),
        Field("words_en", _("or in words, English"), _("what would fill it"), wide=True),
        Field("words_zh", _("or in words, Chinese"), "", wide=True),
    ),
    "unavailable": (
        Field("reason_en", _("why there is no value, English"), "", wide=True),
        Field("reason_zh", _("why there is no value, Chinese"), "", wide=True),
    ),
}
CONSTANT = {
    "quantities": QUANTITIES,
    "outcomes": (*(key for key, _word, _n, _of in OUTCOMES), "mean.reward"),
    "parts": ("n", "of"),
}
TEXTS = (
    "title_en", "title_zh", "denominator_en", "denominator_zh", "scope_en", "scope_zh", "unit", "reason",
)  # fmt: skip


def operands_of(text: str) -> dict[str, str]:
    """{name: key} of lines ``name = key``; a line with one word names the figure by itself."""
    found: dict[str, str] = {}
    for line in text.replace(",", "\n").splitlines():
        name, equals, key = (part.strip() for part in line.partition("="))
        if name:
            found[name] = key if equals else name
    return found


def _offered_operands(expression: str, text: str) -> dict[str, str]:
    """Operands of an expression; a name without a line stands for the figure of that key."""
    given = operands_of(text)
    try:
        used = names(parse(expression))
    except ContractError:
        return given
    return {**{name: name for name in used}, **given}


def binding_of(data: Mapping[str, str]) -> dict[str, Any]:
    """The binding that a form says. Raises ``DomainError`` for a number that is none."""
    form = data.get("type", "")
    if form not in TYPE_FIELDS:
        raise DomainError(f"type: got {form[:80]!r}, expected one of {', '.join(TYPE_FIELDS)}")
    given = {field.name: data.get(f"{form}.{field.name}", "").strip() for field in TYPE_FIELDS[form]}
    found: dict[str, Any] = {"type": form, **{name: value for name, value in given.items() if value}}
    found.pop("plan_version", None)
    if form == "excerpt" and "occurrence" in found:
        found["occurrence"] = whole("occurrence", found["occurrence"])
    if form == "cell":
        found["key"] = found.pop("row", "")
    if form == "derivation":
        found["figures"] = _offered_operands(found.get("expression", ""), found.pop("operands", ""))
    if form == "endpoint" and "arms" in found:
        found["arms"] = [arm.strip() for arm in found["arms"].split(",") if arm.strip()]
    if "endpoint_id" in found:
        found["endpoint"] = found.pop("endpoint_id")
    if form == "pending":
        members = {name: value for name, value in found.items() if name != "type"}
        in_words = "plan" not in members
        kept = ("words_en", "words_zh") if in_words else ("plan", "endpoint")
        found = {"type": form, "fills": {name: members[name] for name in kept if name in members}}
    return found


def whole(name: str, text: str) -> int:
    """A whole number of a form. Raises ``DomainError``."""
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise DomainError(f"{name}: got {text[:40]!r}, expected a whole number")
    return int(text)


def plan_version_of(study: Study, data: Mapping[str, str]) -> PlanVersion | None:
    """The frozen version that the form names. Raises ``DomainError``."""
    text = data.get(f"{data.get('type')}.plan_version", "").strip()
    if not text:
        return None
    rows = PlanVersion.objects.filter(plan__study=study, sha256__startswith=text).select_related("plan")
    found = list(rows[:2]) if len(text) >= 8 else []
    if len(found) != 1:
        raise DomainError(f"plan_version: got {text[:80]!r}, expected the hash of one frozen plan of this study")
    return found[0]


def value_columns(study: Study, data: Mapping[str, str]) -> dict[str, Any]:
    """What ``check_figure`` takes beside key and binding. Raises ``DomainError``."""
    return {
        "kind": data.get("kind", ""), "origin": data.get("origin") or "native", "style": data.get("style") or "plain",
        "digits": whole("digits", data.get("digits", "").strip() or "0"), "unit": data.get("unit", ""),
        "plan_version": plan_version_of(study, data),
    }  # fmt: skip


def columns(study: Study, data: Mapping[str, str]) -> dict[str, Any]:
    """What ``bind_figure`` takes beside key and binding. Raises ``DomainError``."""
    cutoff = data.get("cutoff", "").strip()
    try:
        day = date.fromisoformat(cutoff) if cutoff else None
    except ValueError as error:
        raise DomainError(f"cutoff: got {cutoff[:40]!r}, expected a day as 2026-10-01") from error
    return {**{name: data.get(name, "") for name in TEXTS}, **value_columns(study, data), "cutoff": day}


def writable_studies(principal: Principal) -> list[Study]:
    """Studies whose evidence the principal may write."""
    return studies_with(principal, EVIDENCE_WRITE)


def initial_of(figure: Figure) -> dict[str, str]:
    """Fields of the form that bind a figure as it is bound now."""
    version = figure.current
    assert version is not None
    binding, form = version.binding, version.binding["type"]
    found = {name: str(getattr(version, name)) for name in (*TEXTS, "kind", "origin", "style", "digits")}
    found |= {
        "key": figure.key,
        "type": form,
        "reason": "",
        "cutoff": version.cutoff.isoformat() if version.cutoff else "",
    }
    inner = dict(binding.get("fills", binding))
    inner["row"] = inner.get("key", "")
    inner["endpoint_id"] = inner.get("endpoint", "")
    inner["operands"] = "\n".join(f"{name} = {key}" for name, key in binding.get("figures", {}).items())
    inner["arms"] = ", ".join(inner.get("arms", ()))
    inner["plan_version"] = version.plan_version.sha256 if version.plan_version else ""
    for field in TYPE_FIELDS[form]:
        found[f"{form}.{field.name}"] = str(inner.get(field.name, ""))
    return found


def offered(study: Study) -> dict[str, list[str]]:
    """Values that the fields offer: excerpts, sources with bytes, frozen plans; four queries."""
    sources = Source.objects.filter(study=study, current__held=True)
    plans = PlanVersion.objects.filter(plan__study=study).order_by("-pk").values_list("sha256", "plan__slug")[:OFFERED]
    return {
        "excerpts": list(Excerpt.objects.filter(study=study).order_by("key").values_list("key", flat=True)[:OFFERED]),
        "sources": list(sources.order_by("path").values_list("path", flat=True)[:OFFERED]),
        "figures": list(Figure.objects.filter(study=study).order_by("key").values_list("key", flat=True)[:OFFERED]),
        "plans": [sha256 for sha256, _slug in plans],
        "slugs": sorted({slug for _sha256, slug in plans}),
        **{name: list(values) for name, values in CONSTANT.items()},
    }


@dataclass(frozen=True)
class Panel:
    """The fields of one type with their values."""

    type: str
    word: Any
    fields: list[tuple[Field, str, str]]  # field, name in the form, value
    chosen: bool


def panels(data: Mapping[str, str]) -> list[Panel]:
    """Every type with its fields; the first one is chosen where none is."""
    chosen = data.get("type") if data.get("type") in TYPE_FIELDS else "excerpt"
    return [
        Panel(
            form, TYPES[form],
            [(field, f"{form}.{field.name}", data.get(f"{form}.{field.name}", "")) for field in fields],
            form == chosen,
        )
        for form, fields in TYPE_FIELDS.items()
    ]  # fmt: skip


KIND_CHOICES = KINDS
TEXT_WORDS = (
    ("title_en", _("title, English")),
    ("title_zh", _("title, Chinese")),
    ("denominator_en", _("of what, English")),
    ("denominator_zh", _("of what, Chinese")),
    ("scope_en", _("scope, English")),
    ("scope_zh", _("scope, Chinese")),
)
STYLE_CHOICES = dict(zip(FigureVersion.STYLES, (_("plain"), _("per cent"), _("n/N")), strict=True))
ORIGIN_CHOICES = dict(zip(FigureVersion.ORIGINS, (_("ours"), _("imported")), strict=True))
