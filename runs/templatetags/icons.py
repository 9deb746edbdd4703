"""The interface's own small icon set: 16 x 16, one stroke width, drawn for this project."""

from __future__ import annotations

PATHS: dict[str, str] = {
    "check": '<path d="M2.5 8.5 6 12l7.5-8"/>',
    "cross": '<path d="m3.5 3.5 9 9m0-9-9 9"/>',
    "warn": '<path d="M8 2 1.5 13.5h13zM8 6.5v3.2"/><circle class="fill" cx="8" cy="11.6" r=".8"/>',
    "clock": '<circle cx="8" cy="8" r="6"/><path d="M8 4.5V8l2.5 1.8"/>',
    "run": '<path d="M13.6 6.2A6 6 0 1 0 14 8"/><path d="M14 2.8v3.6h-3.6"/>',
    "circle": '<circle cx="8" cy="8" r="5.2"/>',
    "half": '<circle cx="8" cy="8" r="5.5"/><path class="fill" d="M8 2.5a5.5 5.5 0 0 1 0 11z"/>',
    "dashed": '<circle cx="8" cy="8" r="5.5" stroke-dasharray="2.4 2"/>',
    "dot": '<circle class="fill" cx="8" cy="8" r="4"/>',
    "notequal": '<path d="M3 6h10M3 10h10M11 3 5 13"/>',
    "equal": '<path d="M3 6h10M3 10h10"/>',
    "arrow": '<path d="M2.5 8h10m-4-4 4.5 4-4.5 4"/>',
    "minus": '<path d="M3 8h10"/>',
    "pause": '<path d="M5.5 3.5v9m5-9v9"/>',
    "play": '<path d="M5 3v10l8-5z"/>',
    "stop": '<path d="M4 4h8v8H4z"/>',
    "lock": '<path d="M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5"/>',
    "hatch": '<path d="M2.5 2.5h11v11h-11zM2.5 9 9 2.5m-6.5 11 11-11M7 13.5 13.5 7"/>',
    "flag": '<path d="M4 14V2.5h8l-2 3 2 3H4"/>',
    "barrier": '<path d="M2 8h12M5 4.5v7m6-7v7"/>',
    "copy": '<path d="M5.5 5.5h8v8h-8z"/><path d="M10.5 5.5v-3h-8v8h3"/>',
    "link": '<path d="M6.5 9.5a3 3 0 0 0 4.2 0l2.2-2.2a3 3 0 0 0-4.2-4.2L7.6 4.2"/>'
    '<path d="M9.5 6.5a3 3 0 0 0-4.2 0L3.1 8.7a3 3 0 0 0 4.2 4.2l1.1-1.1"/>',
    "search": '<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/>',
    "moon": '<path d="M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3z"/>',
    "sun": '<circle cx="8" cy="8" r="3"/>'
    '<path d="M8 1.2v1.6m0 10.4v1.6M1.2 8h1.6m10.4 0h1.6M3.2 3.2l'
    '1.1 1.1m7.4 7.4 1.1 1.1m0-9.6-1.1 1.1m-7.4 7.4-1.1 1.1"/>',
    "down": '<path d="m3.5 6 4.5 4.5L12.5 6"/>',
    "left": '<path d="M10 3 5 8l5 5"/>',
    "right": '<path d="m6 3 5 5-5 5"/>',
    "menu": '<path d="M2 4h12M2 8h12M2 12h12"/>',
    "download": '<path d="M8 2v8m-3.5-3L8 10.5 11.5 7M2.5 13.5h11"/>',
}
