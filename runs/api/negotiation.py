"""What a request accepts: the API answers JSON and problems, a download answers its own bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class Negotiation(DefaultContentNegotiation):
    """Media types of Accept; who asks for problem+json alone gets JSON, since every answer may be one."""

    def select_renderer(
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The renderer and its media type. Raises ``NotAcceptable``."""
        view: Any = (getattr(request, "parser_context", None) or {}).get("view")
        accepted = request.headers.get("Accept", "*/*")
        if getattr(view, "is_download", False) or "application/problem+json" in accepted:
            return renderers[0], str(renderers[0].media_type)
        return super().select_renderer(request, renderers, format_suffix)
