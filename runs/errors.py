"""Errors of the domain: each says what was tried, what was found and what was expected."""

from __future__ import annotations


class DomainError(Exception):
    """Base of refusals. Nothing was changed when one is raised."""


class StaleTransition(DomainError):
    """Another writer moved the row first, or the table does not list the transition."""


class StaleLease(DomainError):
    """The job's lease belongs to a later attempt; the caller's result is discarded."""


class NotAllowed(DomainError):
    """The actor may not do this. ``capability``: what a role of the study would have to give, "" where none helps."""

    def __init__(self, *said: object, capability: str = ""):
        self.capability = capability
        super().__init__(*said)


class AlreadyFrozen(DomainError):
    """The plan is frozen: its bytes never change. Supersede it instead."""


class NothingToRun(DomainError):
    """The execution is over; its results stand."""
