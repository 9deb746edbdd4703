"""Submit a bundled study to the running workers: ``python -m worker.submit SLUG SCALE``."""

from __future__ import annotations

import os
import sys


def main(arguments: list[str]) -> int:
    """Entry point. Exit status 2 for wrong arguments; what the study refuses passes on as an error."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m worker.submit SLUG SCALE\n")
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    import django

    django.setup()
    from worker.study import start_study

    slug, scale = arguments
    start_study(slug, scale)
    sys.stdout.write(f"{slug} was started at scale {scale}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
