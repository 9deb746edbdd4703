"""``manage.py token``: an API token for a user, from the command line of the machine that holds the data."""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from runs.access import SCOPES
from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.actions.tokens import issue_token
from runs.errors import DomainError
from runs.models import ApiToken, User
from workbench.home import ADMIN, initialise


class Command(BaseCommand):
    """Prints the secret once, alone on standard output; nothing can show it again."""

    help = "Make an API token for a user and print its secret."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--user", default=ADMIN, help="whose rights it has (default: %(default)s)")
        parser.add_argument("--name", required=True, help="what it is for")
        parser.add_argument("--scopes", default="read,write", help=f"some of {', '.join(SCOPES)}, with commas")
        parser.add_argument("--days", type=int, default=30, help="days until it expires (0: never)")
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        at = timezone.now()
        with audited_command("token", by=service_actor("command line"), at=at, subject=f"of {options['user']}"):
            token, secret = self._issue(options, at)
        if options["json"]:
            until = None if token.expires_at is None else token.expires_at.isoformat()
            self.stdout.write(json.dumps({"prefix": token.prefix, "secret": secret, "expires_at": until}))
        else:
            self.stdout.write(secret)

    def _issue(self, options: dict[str, Any], at: datetime) -> tuple[ApiToken, str]:
        """The token and its secret. Raises ``CommandError`` naming the option that is refused."""
        user, days = User.objects.filter(username=options["user"]).first(), options["days"]
        if user is None:
            raise CommandError(f"--user: got {options['user']!r}, expected the name of a user")
        if days < 0:
            raise CommandError(f"--days: got {days}, expected 0 or more")
        scopes = [item.strip() for item in options["scopes"].split(",") if item.strip()]
        try:
            expires_at = at + timedelta(days=days) if days else None
            return issue_token(user, name=options["name"], scopes=scopes, expires_at=expires_at, at=at)
        except (DomainError, OverflowError) as error:
            raise CommandError(str(error)) from error
