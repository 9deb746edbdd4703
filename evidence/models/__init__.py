"""What pages say and what they rest on."""

from .base import EvidenceRecord, stream_of
from .claim import (
    Answer,
    Claim,
    ClaimFigure,
    ClaimVersion,
    Link,
    LinkWithdrawal,
    Reservation,
    Review,
    StaleMark,
    StaleResolution,
    Waiting,
)
from .figure import Excerpt, ExcerptHead, Figure, FigureInput, FigureVersion
from .notes import AcceptanceContract, JournalDay, JournalNote, NotesVersion, SignedHead, TimeStamp
from .source import Source, SourceCheck, SourceVersion, WatchedFolder

RECORDS: tuple[type[EvidenceRecord], ...] = (
    SourceVersion,
    SourceCheck,
    Excerpt,
    FigureVersion,
    ClaimVersion,
    Link,
    LinkWithdrawal,
    Review,
    Answer,
    StaleMark,
    StaleResolution,
    NotesVersion,
    AcceptanceContract,
    JournalDay,
    JournalNote,
)

__all__ = [
    "RECORDS",
    "AcceptanceContract",
    "Answer",
    "Claim",
    "ClaimFigure",
    "ClaimVersion",
    "EvidenceRecord",
    "Excerpt",
    "ExcerptHead",
    "Figure",
    "FigureInput",
    "FigureVersion",
    "JournalDay",
    "JournalNote",
    "Link",
    "LinkWithdrawal",
    "NotesVersion",
    "Reservation",
    "Review",
    "SignedHead",
    "Source",
    "SourceCheck",
    "SourceVersion",
    "StaleMark",
    "StaleResolution",
    "TimeStamp",
    "Waiting",
    "WatchedFolder",
    "stream_of",
]
