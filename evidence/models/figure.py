"""Excerpts and figures: what a source says at one place, and the values that pages may show."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel

from .base import EvidenceRecord


class Excerpt(EvidenceRecord):
    """A place in a version of a source. ``selector`` by ``form``:

    quote {exact, prefix, suffix, line}; pointer {pointer}; cell {column, key_column, key}.
    ``matched``: found exactly once in held bytes. ``transcribed``: copied from a source whose bytes are not held,
    at most 200 characters, shown as a quotation. ``key`` is unique in the study.
    """

    KIND = "excerpt"
    QUOTE, POINTER, CELL = "quote", "pointer", "cell"
    MATCHED, TRANSCRIBED = "matched", "transcribed"

    version = models.ForeignKey("evidence.SourceVersion", models.PROTECT, related_name="excerpts")
    key = models.CharField(max_length=100)
    form = models.CharField(max_length=16)
    selector = models.JSONField()
    kind = models.CharField(max_length=16)
    text = models.TextField()
    language = models.CharField(max_length=16, blank=True, default="")
    note = models.TextField(blank=True, default="")

    class Meta(EvidenceRecord.Meta):
        constraints = [models.UniqueConstraint(fields=["study", "key"], name="excerpt_key_unique")]

    def __str__(self) -> str:
        return self.key


class ExcerptHead(models.Model):
    """What the last check of an excerpt found, a projection that ``verify`` builds again.

    found (exactly once, where it was), moved (exactly once, elsewhere in the newest bytes), orphan (nowhere, or more
    than once), transcribed (nothing to check against), unavailable (the bytes are gone).
    """

    FOUND, MOVED, ORPHAN, TRANSCRIBED, UNAVAILABLE = "found", "moved", "orphan", "transcribed", "unavailable"

    excerpt = models.OneToOneField(Excerpt, models.PROTECT, related_name="head")
    state = models.CharField(max_length=16)
    first_line = models.PositiveIntegerField(null=True)
    last_line = models.PositiveIntegerField(null=True)
    checked_at = models.DateTimeField()


class Figure(models.Model):
    """Head of a displayed value. ``key`` names it in texts: ``[[pilot.nonzero]]``.

    ``state`` is a projection: bound (recomputed and equal, from verified bytes), claimed (rests on bytes that are
    not held), drifted (recomputes to another value, or its source drifted), unavailable (no value, with a reason;
    never 0), pending (names what would fill it). ``stale``: something that it rests on has changed.
    """

    BOUND, CLAIMED, DRIFTED, UNAVAILABLE, PENDING = "bound", "claimed", "drifted", "unavailable", "pending"
    STATES = (BOUND, CLAIMED, DRIFTED, UNAVAILABLE, PENDING)

    uid = models.UUIDField(unique=True, editable=False)
    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="figures")
    key = models.CharField(max_length=100)
    current = models.ForeignKey("evidence.FigureVersion", models.PROTECT, null=True, related_name="+")
    state = models.CharField(max_length=16)
    stale = models.BooleanField(default=False)
    checked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "key"], name="figure_key_unique"),
            models.CheckConstraint(
                name="figure_state_known",
                condition=models.Q(state__in=["bound", "claimed", "drifted", "unavailable", "pending"]),
            ),
        ]
        indexes = [models.Index(fields=["study", "state", "stale"], name="figure_by_state")]

    def __str__(self) -> str:
        return self.key


class FigureVersion(EvidenceRecord):
    """What a figure was bound to at one time.

    ``binding``: {"type": "pointer" | "cell" | "excerpt" | "derivation" | "receipt" | "endpoint" | "unavailable"
    | "pending", ...}; see ``evidence.binding.figures``. ``value``: the exact number as text (decimal, or a fraction
    ``92/244``), None where pending or unavailable. ``numerator`` and ``denominator``: exact texts of a rate, and
    ``denominator_en`` / ``_zh`` say of what. ``style``: plain, percent, ratio (n/N). ``digits``: decimal places shown.
    ``kind``: mechanism, parameter_change, environment, cost, effect: a figure of another kind never fills an effect
    cell. ``origin``: an imported effect is displayed and fills no pending cell.
    """

    KIND = "figure_version"
    KINDS = ("mechanism", "parameter_change", "environment", "cost", "effect")
    ORIGINS = ("native", "imported")
    STYLES = ("plain", "percent", "ratio")

    figure = models.ForeignKey(Figure, models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    title_en = models.CharField(max_length=300)
    title_zh = models.CharField(max_length=300, blank=True, default="")
    kind = models.CharField(max_length=24)
    origin = models.CharField(max_length=16)
    binding = models.JSONField()
    source_version = models.ForeignKey("evidence.SourceVersion", models.PROTECT, null=True, related_name="figures")
    excerpt = models.ForeignKey(Excerpt, models.PROTECT, null=True, related_name="figures")
    plan_version = models.ForeignKey("runs.PlanVersion", models.PROTECT, null=True, related_name="figures")
    endpoint = models.CharField(max_length=100, blank=True, default="")
    value = models.CharField(max_length=200, null=True)
    numerator = models.CharField(max_length=100, blank=True, default="")
    denominator = models.CharField(max_length=100, blank=True, default="")
    denominator_en = models.CharField(max_length=300, blank=True, default="")
    denominator_zh = models.CharField(max_length=300, blank=True, default="")
    unit = models.CharField(max_length=64, blank=True, default="")
    style = models.CharField(max_length=16, default="plain")
    digits = models.PositiveIntegerField(default=0)
    scope_en = models.TextField(blank=True, default="")
    scope_zh = models.TextField(blank=True, default="")
    cutoff = models.DateField(null=True)
    reason = models.TextField(blank=True, default="")

    class Meta(EvidenceRecord.Meta):
        constraints = [
            models.UniqueConstraint(fields=["figure", "number"], name="figure_version_number_unique"),
            models.CheckConstraint(
                name="figure_kind_known",
                condition=models.Q(kind__in=["mechanism", "parameter_change", "environment", "cost", "effect"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.figure} version {self.number}"


class FigureInput(AppendOnlyModel):
    """An operand of a derivation: the figure that ``name`` stands for in the expression. In the binding too."""

    version = models.ForeignKey(FigureVersion, models.PROTECT, related_name="inputs")
    name = models.CharField(max_length=100)
    figure = models.ForeignKey(Figure, models.PROTECT, related_name="used_in")

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["version", "name"], name="figure_input_unique")]
