"""Readers of other trainers' logs: pure, streaming, resumable. Neither Django nor torch.

``detect(path)`` names the format; ``open_import(path, format, resume)`` yields its items. Whatever a file
holds, memory stays bounded, nothing is unpickled, nothing is written under a foreign name, and what
cannot be read is said with its place.
"""

from .formats import FORMATS, Format, detect, open_import
from .items import LOSSES, Cursor, Item, MetricItem, ParameterItem, ProblemItem, RolloutItem
from .limits import LIMITS, ImportRefused, Limits
from .mapping import Mapping, map_name

__all__ = [
    "FORMATS",
    "LIMITS",
    "LOSSES",
    "Cursor",
    "Format",
    "ImportRefused",
    "Item",
    "Limits",
    "Mapping",
    "MetricItem",
    "ParameterItem",
    "ProblemItem",
    "RolloutItem",
    "detect",
    "map_name",
    "open_import",
]
