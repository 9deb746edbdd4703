"""Saved filters: a person keeps a query under a name."""

from __future__ import annotations

from datetime import datetime

from runs.errors import DomainError
from runs.models import SavedFilter, User

MOST = 100


def save_filter(user: User, page: str, name: str, query: str, *, pages: tuple[str, ...], at: datetime) -> SavedFilter:
    """Keep ``query`` for list ``page``; a name that the list has already gets the new query.

    Raises ``DomainError`` for a list out of ``pages``, an empty or long name, or more than ``MOST`` filters.
    """
    name, query = name.strip(), query.strip()
    if page not in pages:
        raise DomainError(f"page: got {page!r}, expected one of {', '.join(pages)}")
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise DomainError(f"name: got {len(name)} characters, expected 1 to 100 readable ones")
    if not 1 <= len(query) <= 500:
        raise DomainError(f"query: got {len(query)} characters, expected 1 to 500")
    own = SavedFilter.objects.filter(user=user)
    if own.count() >= MOST and not own.filter(page=page, name=name).exists():
        raise DomainError(f"filters: got {MOST} saved ones, expected fewer; delete one first")
    found, _made = SavedFilter.objects.update_or_create(
        user=user, page=page, name=name, defaults={"query": query, "created_at": at}
    )
    return found


def delete_filter(user: User, pk: int) -> None:
    """Forget one of the person's filters. Raises ``SavedFilter.DoesNotExist`` for any other."""
    SavedFilter.objects.get(user=user, pk=pk).delete()
