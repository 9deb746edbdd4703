#!/usr/bin/env python3
"""Entry point of every command: ``manage.py up``, ``study run``, ``verify``, ``doctor``, and Django's own."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one management command. Says how to set up where the requirements are not installed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit(
            f"{error.name} is not installed for {sys.executable}. Run `make run` (it sets up .venv), "
            "or use .venv/bin/python manage.py."
        ) from error
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
