"""Counts and times of requests by route, kept in this process, which is the only one that serves pages."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry(auto_describe=True)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNMATCHED = "unmatched"  # one name for every address that leads nowhere: scanners must not make series
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

REQUESTS = Counter(
    "workbench_http_requests", "Requests by route, method and status.", ("route", "method", "status"), registry=REGISTRY
)
SECONDS = Histogram(
    "workbench_http_request_seconds",
    "Time until the answer's head was ready, by route.",
    ("route",),
    buckets=BUCKETS,
    registry=REGISTRY,
)
ERRORS = Counter("workbench_http_errors", "Answers with status 500 and above, by route.", ("route",), registry=REGISTRY)
UNDER_WAY = Gauge("workbench_http_requests_under_way", "Requests that are being answered.", registry=REGISTRY)


def route_of(request: HttpRequest) -> str:
    """Name of the route that was matched, never the address itself."""
    match = request.resolver_match
    return (match.view_name or match.route or UNMATCHED) if match is not None else UNMATCHED


class RequestMetrics:
    """Count and time each request. It stands outermost, so that refusals of other layers count too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        with UNDER_WAY.track_inprogress():
            response = self.get_response(request)
        route = route_of(request)
        method = request.method if request.method in METHODS else "other"
        REQUESTS.labels(route, method, str(response.status_code)).inc()
        SECONDS.labels(route).observe(time.perf_counter() - started)
        if response.status_code >= 500:
            ERRORS.labels(route).inc()
        return response
