"""A caller of the API: requests with a token, and what every answer must keep to."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

ROOT = "/api/v1/"
PROBLEM = "application/problem+json"


class Api:
    """Requests of one token; "" is nobody. ``raw`` bytes go out as they are."""

    def __init__(self, secret: str) -> None:
        self.client = Client(raise_request_exception=False)
        self.secret = secret

    def call(self, method: str, path: str, body: Any = None, raw: Any = None, **headers: Any) -> Any:
        """One request; header names with ``_`` for ``-``. A refusal must be a problem of its own status."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.secret:
            given.setdefault("Authorization", f"Bearer {self.secret}")
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        kind = given.pop("Content-Type", "application/json")
        response = self.client.generic(method, ROOT + path, data, content_type=kind, headers=given)
        if response.status_code >= 400 and method != "HEAD":
            assert response["Content-Type"] == PROBLEM, (response.status_code, response.content[:300])
            found = response.json()
            assert found["status"] == response.status_code and found["title"] and found["detail"]
        return response

    def get(self, path: str, **headers: str) -> Any:
        """A read."""
        return self.call("GET", path, **headers)

    def read(self, path: str, **headers: str) -> Any:
        """The body of a read that succeeds."""
        response = self.get(path, **headers)
        assert response.status_code == 200, response.content[:500]
        return response.json()

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        """A change."""
        return self.call("POST", path, body, **headers)


def fields(response: Any) -> list[str]:
    """The fields that a problem names."""
    return [entry["field"] for entry in response.json()["errors"]]


def content(response: Any) -> bytes:
    """All bytes of an answer, streamed or not."""
    return b"".join(response.streaming_content) if response.streaming else bytes(response.content)
