"""The closed vocabulary of the environment: names, source families, attributes, values.

Every word is one run of letters or digits, so that a tokenizer can hold it as a single token.
No value is a word of a prompt or of the instructions: a prompt cannot leak a reference by its wording.
"""

from __future__ import annotations

FAMILIES = ("label", "notice", "registry")

# Families whose search hits are headings only: the value is read by opening the document.
HEADING_ONLY = frozenset({"notice"})

VALUES: dict[str, dict[str, tuple[str, ...]]] = {
    "label": {
        "dose": ("10", "20", "30", "40", "60", "80"),
        "route": ("oral", "nasal", "dermal", "rectal", "ocular", "buccal"),
        "storage": ("cool", "dry", "dark", "frozen", "sealed", "upright"),
    },
    "notice": {
        "hazard": ("glass", "mold", "leak", "rust", "fiber", "odor"),
        "region": ("north", "south", "east", "west", "coast", "inland"),
        "remedy": ("discard", "replace", "refund", "relabel", "inspect", "hold"),
    },
    "registry": {
        "maker": ("Alden", "Brisk", "Corvo", "Dunmor", "Estrel", "Fennar"),
        "status": ("active", "lapsed", "pending", "revoked", "paused", "draft"),
        "class": ("alpha", "beta", "gamma", "delta", "sigma", "omega"),
    },
}

ATTRIBUTES = {attribute: family for family in FAMILIES for attribute in VALUES[family]}

NAMES = (
    "Zorvex", "Belmic", "Candor", "Drusil", "Eltram", "Fovane", "Galder", "Hexapin", "Ilvora", "Jantel",
    "Kelmor", "Lorvan", "Mirtax", "Nolvic", "Optera", "Pelzin", "Quavir", "Rendol", "Solvek", "Tarnil",
    "Umbrex", "Valcor", "Wexlin", "Xandil", "Yorvan", "Zelmat", "Arcten", "Borvil", "Cyntor", "Daxlen",
    "Ervion", "Fulmar", "Gorzan", "Hilvex", "Ipsora", "Jorvik", "Kansol", "Lumpra", "Movrin", "Nixter",
)  # fmt: skip

ID_LOW, ID_HIGH = 100, 400  # document ids: three digits, half-open interval

# The attribute pairs that neither demonstrations nor the train, validation, test and anchor splits contain.
HELD_OUT_PAIRS = frozenset(
    (first, second)
    for left, right in (("label", "notice"), ("label", "registry"), ("notice", "registry"))
    for i, first in enumerate(VALUES[left])
    for j, second in enumerate(VALUES[right])
    if (i + j) % 3 == 0
)
KNOWN_PAIRS = tuple(
    (first, second)
    for left, right in (("label", "notice"), ("label", "registry"), ("notice", "registry"))
    for first in VALUES[left]
    for second in VALUES[right]
    if (first, second) not in HELD_OUT_PAIRS
)
