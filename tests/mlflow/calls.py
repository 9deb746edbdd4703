"""Requests as MLflow's clients send them, without the client: every refusal must have their error body."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlencode

from django.test import Client

ROOT = "/api/2.0/mlflow/"
FILES = "/api/2.0/mlflow-artifacts/artifacts"


class Mlflow:
    """Requests of one token; "" is nobody."""

    def __init__(self, secret: str, *, basic: str | None = None) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers: dict[str, str] = {}
        if basic is not None:
            self.headers["Authorization"] = "Basic " + base64.b64encode(f"{basic}:{secret}".encode()).decode()
        elif secret:
            self.headers["Authorization"] = f"Bearer {secret}"

    def call(self, method: str, path: str, body: Any = None, raw: bytes | None = None) -> Any:
        """One request; ``raw`` goes out as it is."""
        address = path if path.startswith("/") else ROOT + path
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        answer = self.client.generic(method, address, data, content_type="application/json", headers=self.headers)
        if answer.status_code >= 400:
            found = answer.json()
            assert set(found) == {"error_code", "message"} and found["message"], found
        return answer

    def post(self, path: str, expected: int = 200, /, **body: Any) -> Any:
        """The answer's body of a POST that ends with a status."""
        answer = self.call("POST", path, body)
        assert answer.status_code == expected, answer.content[:500]
        return answer.json()

    def get(self, path: str, expected: int = 200, /, **query: Any) -> Any:
        """The answer's body of a GET that ends with a status."""
        answer = self.call("GET", f"{path}?{urlencode(query, doseq=True)}")
        assert answer.status_code == expected, answer.content[:500]
        return answer.json()

    def run(self, experiment: Any, name: str = "one", **more: Any) -> str:
        """A new run's id."""
        made = self.post("runs/create", experiment_id=str(experiment), run_name=name, start_time=1000, **more)
        return str(made["run"]["info"]["run_id"])

    def history(self, run: str, key: str) -> list[tuple[int, int, Any]]:
        """(step, time, value) of every point."""
        found = self.get("metrics/get-history", run_id=run, metric_key=key)["metrics"]
        return [(item["step"], item["timestamp"], item["value"]) for item in found]


def point(key: str, value: Any, step: int = 0, time: int = 1) -> dict[str, Any]:
    """A metric."""
    return {"key": key, "value": value, "timestamp": time, "step": step}
