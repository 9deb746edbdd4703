"""Amounts in cents."""


def cents(text):
    """Cents of an amount such as 12.50, 12 or -0.05."""
    whole, _, rest = text.partition(".")
    return int(whole) * 100 + int(rest or 0)


def shown(amount):
    """An amount of cents as text, with two places."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"
