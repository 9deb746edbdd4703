"""HEAD, which a client may send anywhere: never an error of the server."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver

pytestmark = pytest.mark.django_db
GIVEN = {"uuid": str(uuid.UUID(int=7)), "slug": "nothing", "str": "nothing", "int": "7", "path": "a/b"}


def _addresses(resolver: URLResolver, before: str = "") -> list[str]:
    found = []
    for item in resolver.url_patterns:
        whole = before + str(item.pattern)
        found += _addresses(item, whole) if isinstance(item, URLResolver) else [whole]
        assert isinstance(item, URLResolver | URLPattern)
    return found


def test_no_address_of_the_api_answers_head_with_an_error_of_the_server(client: Client) -> None:
    addresses = [item for item in _addresses(get_resolver()) if item.startswith("api/v1/")]
    assert len(addresses) > 100
    for address in addresses:
        parts = []
        for part in address.split("/"):
            parts.append(GIVEN.get(part[1:].split(":")[0], "nothing") if part.startswith("<") else part)
        answer = client.head("/" + "/".join(parts))
        assert answer.status_code < 500, address
