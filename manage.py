#!/usr/bin/env python3
"""Entry point of every command: ``manage.py up``, ``study run``, ``verify``, ``doctor``, and Django's own."""

from __future__ import annotations

import errno
import os
import sys

DISK = (errno.ENOSPC, errno.EROFS, errno.EDQUOT)  # no room, or read-only


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
    try:
        execute_from_command_line(sys.argv)
    except OSError as error:
        if error.errno not in DISK:
            raise
        raise SystemExit(
            f"{error.filename or 'disk'}: {error.strerror}. WORKBENCH_HOME names another folder."
        ) from error


if __name__ == "__main__":
    main()
