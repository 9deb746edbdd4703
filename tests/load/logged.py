"""Addresses of logged runs, of their metrics and of comparisons, in a world where ``tests.load.points`` has written."""

from __future__ import annotations

from urllib.parse import quote

from runs.models import MetricSeries, Run, TrackedRun
from runs.presenters.layers.cards import cards_of
from runs.presenters.layers.quantities import quantities_of
from tests.load.points import STUDY
from workbench.benchmarks.seeding import METRICS

COMPARED = 20  # runs that are drawn together

WHERE = ("metrics.loss < 0.5", "params.lr = '3e-4'", "tags.group = 'g4' and metrics.reward > 0.9")


def logged_addresses() -> dict[str, str]:
    """Name -> address. Needs logged runs."""
    runs = [str(item) for item in TrackedRun.objects.order_by("pk").values_list("run__uid", flat=True)[: COMPARED + 1]]
    one, several = runs[7], "&".join(f"run={uid}" for uid in runs[:COMPARED])
    drawn = list(Run.objects.filter(tracked__isnull=False).select_related("tracked").order_by("tracked__pk")[:COMPARED])
    card = next(item.key for cards in cards_of(drawn[7]).values() for item in cards)
    shared = quantities_of(drawn)[0].key
    series = MetricSeries.objects.filter(run__uid=one, name=METRICS[0]).values_list("uid", flat=True)[0]
    pages = [
        "/logged/", "/logged/?page=100", "/logged/?q=run%20997", f"/logged/{one}/", f"/studies/{STUDY}/",
        "/metrics-table/", "/metrics-table/?q=kl", f"/runs/{one}/layers/",
        f"/runs/{one}/layers/data.json?series={series}", "/layers/compare/", "/layers/compare/?q=run%2099",
        f"/layers/compare/?{several}", f"/runs/{one}/layers/export/{card}.csv",
        f"/runs/{one}/layers/export/{card}.parquet", f"/layers/compare/{shared}/card/?{several}",
        f"/layers/compare/{shared}.csv?{several}",
    ]  # fmt: skip
    names = [
        f"logged-runs/{one}", f"logged-runs/{one}/metrics", f"logged-runs/{one}/history?name=loss",
        f"logged-runs/{one}/history.arrow?name=loss", f"logged-runs/{one}/chart?name=loss",
    ]  # fmt: skip
    asked = [f"logged-runs?limit=100&study={STUDY}&where={quote(text)}" for text in WHERE]
    return {f"logged: {item}": item for item in pages} | {
        f"logged api: {item}": f"/api/v1/{item}" for item in [*names, *asked]
    }
