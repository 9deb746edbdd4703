"""PRML plans (``*.prml.yaml``) in and out: what maps onto a plan of ours, and by name what does not.

A PRML manifest pre-registers one claim: a metric, how it compares with a threshold, a data set by hash, a seed and a
producer, closed by the SHA-256 of its own canonical text. A plan of ours registers a whole experiment; so going out
each endpoint becomes a manifest of its own, and coming in a manifest becomes the beginning of a draft.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from runs.actions.plans import parse_plan_text
from runs.errors import DomainError

VERSION = "prml/0.1"
COMPARATORS = {">=", "<=", ">", "<", "=="}
_NEEDED = ("version", "claim_id", "created_at", "metric", "comparator", "threshold", "dataset", "seed", "producer")
_SHA256 = re.compile(r"[0-9a-f]{64}")
