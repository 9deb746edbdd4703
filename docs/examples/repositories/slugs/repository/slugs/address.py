"""Addresses of titles."""

from slugs.words import words


def slug(title, most=20):
    """Words joined by hyphens, cut at a word's end to at most ``most`` letters."""
    return "-".join(words(title))[:most]


def unique(title, taken):
    """The slug, with a number from 2 where it is taken."""
    base = slug(title)
    number = 1
    while base in taken:
        number += 1
        base = f"{base}-{number}"
    return base
