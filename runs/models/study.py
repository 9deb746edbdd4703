"""Study: one line of research."""

from __future__ import annotations

from django.db import models


class Study(models.Model):
    """Owns plans. Titles and summaries may be corrected; nothing that is hashed reads them."""

    uid = models.UUIDField(unique=True, editable=False)
    slug = models.SlugField(max_length=100, unique=True)
    title_en = models.CharField(max_length=300)
    title_zh = models.CharField(max_length=300, blank=True, default="")
    summary_en = models.TextField(blank=True, default="")
    summary_zh = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    created_by = models.ForeignKey("runs.Actor", models.PROTECT, related_name="studies")

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug
