"""Each process that runs tests has a data directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from tests import conftest


def test_settings_were_read_for_this_process(pytestconfig: pytest.Config) -> None:
    assert settings.HOME.root == Path(conftest._home)
    assert Path(settings.BLOB_ROOT).is_relative_to(conftest._home)
