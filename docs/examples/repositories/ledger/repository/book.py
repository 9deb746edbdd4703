"""A book of entries."""

from money import cents, shown


def balance(entries):
    """Balance of lines such as "rent -300.00", as text."""
    total = 0
    for line in entries:
        _, amount = line.split(" ")
        total += cents(amount)
    return shown(total)
