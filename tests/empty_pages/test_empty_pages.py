"""Every page of an empty database says what would fill it; none fails."""

from __future__ import annotations

import pytest
from django.test import Client


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/", "Nothing has run here yet."),
        ("/plans/", "manage.py study run fatal-mask-pair"),
        ("/runs/", "Runs are created when a frozen plan starts"),
        ("/evaluations/", "Evaluation begins with the parent"),
        ("/checkpoints/", "The parent appears when a frozen plan starts"),
        ("/receipts/", "Freezing a plan writes the first one"),
        ("/jobs/", "Jobs are created when a frozen plan starts"),
        ("/search/", "every uid and hash by a prefix"),
    ],
)
def test_what_would_fill_it(client: Client, db: None, address: str, sentence: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200
    assert sentence in answer.content.decode()
