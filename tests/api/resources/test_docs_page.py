"""The page of the API, and the schema behind it: complete, offline, with a right for every operation."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver

from runs.api.docs import METHODS, operations
from runs.api.schema import document
from tests.pages.state import World


def test_every_operation_stands_on_the_page(world: World, client: Client) -> None:
    text = client.get("/api/").content.decode()
    wanted = [item[method] for item in document()["paths"].values() for method in METHODS if method in item]
    assert len(wanted) > 50 and all(f'id="{item["operationId"]}"' in text for item in wanted)
    assert "style=" not in text and "<script>" not in text and "http://" not in re.sub(r'xmlns="[^"]*"', "", text)


def test_operation_ids_are_unique() -> None:
    rows = [
        item[method]["operationId"] for item in document()["paths"].values() for method in METHODS if method in item
    ]
    assert len(rows) == len(set(rows))


def test_examples_are_json_and_requests_are_shell(world: World) -> None:
    for _tag, rows in operations("en"):
        for row in rows:
            for text in (row.body, row.answer):
                assert text == "" or json.loads(text) is not None
            words = shlex.split(row.curl)
            assert words[0] == "curl" and words[-1].startswith("$WORKBENCH_URL/api/v1/")
            assert ("Idempotency-Key: $(uuidgen)" in words) == (
                row.method == "POST" and row.path != "/api/v1/me/tokens"
            )


def test_every_address_is_in_the_schema() -> None:
    """What the server routes and what the schema says are the same set."""
    found: list[Any] = [p for p in get_resolver().url_patterns if str(p.pattern) == "api/v1/"]
    patterns: list[Any] = [pattern for part in found for pattern in part.url_patterns]
    routed = {re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(p.pattern)) for p in patterns if p.name != "not_found"}
    assert routed == {path.removeprefix("/api/v1/") for path in document()["paths"]}


def test_every_operation_documents_problems() -> None:
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item:
                answers = item[method]["responses"]
                assert {"400", "401", "404", "429", "500"} <= set(answers), path
                assert "x-capability" in item[method]
                for code, answer in answers.items():
                    assert int(code) < 400 or list(answer["content"]) == ["application/problem+json"], (path, code)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_page_speaks_both_languages(world: World, client: Client, language: str) -> None:
    response = client.get("/api/", headers={"Accept-Language": language})
    assert response.status_code == 200 and f'<html lang="{language}"' in response.content.decode()
