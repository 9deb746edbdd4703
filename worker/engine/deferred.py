"""bitsandbytes is imported where NF4 asks for it: peft and transformers would load it with every start."""

from __future__ import annotations

import importlib
import sys
from typing import Any

NAME = "bitsandbytes"


def leave_out() -> None:
    """Let peft and transformers take bitsandbytes for absent until ``load``; a second of every start."""
    sys.modules.setdefault(NAME, None)  # type: ignore[arg-type]  # the import system's word for absent


def load() -> Any:
    """The module bitsandbytes. Raises ``ImportError`` where it is not installed or broken."""
    if NAME in sys.modules and sys.modules[NAME] is None:
        from peft import import_utils
        from transformers.utils import is_bitsandbytes_available

        del sys.modules[NAME]
        for asked in (import_utils.is_bnb_available, import_utils.is_bnb_4bit_available, is_bitsandbytes_available):
            asked.cache_clear()  # each has concluded that there is none
    return importlib.import_module(NAME)
