"""Errors of the contracts: each says which field, which value and what was expected."""

from __future__ import annotations

from dataclasses import dataclass


class ContractError(ValueError):
    """Bytes or values that break a contract. Nothing has been stored when it is raised."""


class CanonicalError(ContractError):
    """A value that has no canonical form (RFC 8785 as restricted in ``canonical``)."""


class CaptureError(ContractError):
    """A capture whose bytes, lengths or hash disagree. Training must refuse it."""


class RecordError(ContractError):
    """A record with a missing, unknown or wrongly typed field."""


@dataclass(frozen=True)
class Problem:
    """One fault of a document: ``field`` is a dotted path, ``got`` its value as text."""

    field: str
    got: str
    expected: str

    def __str__(self) -> str:
        return f"{self.field}: got {self.got}, expected {self.expected}"


class PlanInvalid(ContractError):
    """A plan document that cannot be frozen; ``problems`` lists every fault found, not the first."""

    def __init__(self, problems: list[Problem]):
        self.problems = problems
        super().__init__("; ".join(str(problem) for problem in problems))


class FaultBoundary(Exception):
    """Base of faults named by the boundary that they crossed; recorded, never dropped."""


class EnvironmentFault(FaultBoundary):
    """The tool backend broke. The trajectory is infrastructure-invalid: no reward at all."""


class RewardFault(FaultBoundary):
    """The reward could not be computed. The trajectory is infrastructure-invalid."""


class EngineFault(FaultBoundary):
    """The engine refused its input (hash, length, adapter identity) or met a non-finite value."""
