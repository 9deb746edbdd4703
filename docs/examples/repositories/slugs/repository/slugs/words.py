"""Words of a title."""


def words(title):
    """Words in lower case, without signs."""
    kept = "".join(letter if letter.isalnum() else " " for letter in title)
    return kept.split()
