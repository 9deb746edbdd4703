"""Study: one line of research."""

from __future__ import annotations

from django.db import models


class Study(models.Model):
    """Owns plans. Titles and summaries may be corrected; nothing that is hashed reads them.

    ``visibility``: private (members), internal (every signed-in person), public (whoever reaches the server).
    """

    PRIVATE, INTERNAL, PUBLIC = "private", "internal", "public"

    uid = models.UUIDField(unique=True, editable=False)
    slug = models.SlugField(max_length=100, unique=True)
    title_en = models.CharField(max_length=300)
    title_zh = models.CharField(max_length=300, blank=True, default="")
    summary_en = models.TextField(blank=True, default="")
    summary_zh = models.TextField(blank=True, default="")
    visibility = models.CharField(max_length=16, default="private")
    created_at = models.DateTimeField()
    created_by = models.ForeignKey("runs.Actor", models.PROTECT, related_name="studies")

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(
                name="study_visibility_known", condition=models.Q(visibility__in=["private", "internal", "public"])
            )
        ]

    def __str__(self) -> str:
        return self.slug
