"""Values of a closed execution: registered endpoints and evaluation cells, as the results page computes them.

Nothing is read before the closure manifest is stored. The closure names the aggregate by hash; both hashes are part
of a binding, so that a figure names the very documents that it was read from.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evidence.binding.expressions import number
from runs.actions.closure import closure_of
from runs.errors import DomainError
from runs.models import EvaluationItem, Execution, PlanVersion
from runs.parsed import Parsed
from runs.presenters.evaluation import OUTCOMES, cells_of
from runs.presenters.results import PARENT, stored_aggregate
from workbench.contracts.canonical import decode_float

QUANTITIES = ("difference", "low", "high", "seed_sd", "tasks", "seeds")
MEANS = ("reward", "success")  # of which a cell's mean over episodes is given, not a count
PARTS = ("n", "of")
CLOSED = "closed"
_CLOSURES = Parsed("closure", most=4)


class ClosedError(DomainError):
    """An execution that is not closed, or a cell or endpoint that its documents do not hold."""


@dataclass(frozen=True)
class Closed:
    """The stored documents of a closed execution."""

    version: PlanVersion
    execution: Execution
    aggregate: dict[str, Any]
    aggregate_sha256: str
    closure_sha256: str

    @property
    def pins(self) -> dict[str, str]:
        """What a binding adds to name these documents."""
        return {
            "plan_sha256": self.version.sha256,
            "aggregate_sha256": self.aggregate_sha256,
            "closure_sha256": self.closure_sha256,
        }


def closed_execution(version: PlanVersion) -> Closed:
    """The closed execution of exactly this frozen version. Raises ``ClosedError`` before it is closed."""
    execution = Execution.objects.filter(plan_version=version).first()
    state = "no execution" if execution is None else f"an execution that is {execution.state}"
    closure = None if execution is None else closure_of(execution)
    if execution is None or execution.state != CLOSED or closure is None:
        raise ClosedError(f"plan_version: got {state}, expected the closed execution of {version}")
    aggregate, document = stored_aggregate(execution)
    manifest = _CLOSURES.get(closure.sha256, lambda: bytes(closure.bytes))
    if aggregate is None or document is None:
        raise ClosedError(f"aggregate: got none, expected the one that closing {version} stored")
    if manifest.get("plan_sha256") != version.sha256 or manifest.get("aggregate_sha256") != document.sha256:
        raise ClosedError(f"closure: got one that names other documents, expected those of {version}")
    return Closed(version, execution, aggregate, document.sha256, closure.sha256)


def _exact(value: Any, what: str) -> Fraction:
    plain = decode_float(value)
    if plain is None or plain != plain or plain in (float("inf"), float("-inf")):
        raise ClosedError(f"{what}: got no number, expected one; a quantity that was not measured is unavailable")
    return number(repr(value))


def endpoint_result(closed: Closed, endpoint: str, arms: list[str] | None) -> dict[str, Any]:
    """The stored result of an endpoint; ``arms`` where it covers several. Raises ``ClosedError``."""
    ids = [item["endpoint"]["id"] for item in closed.aggregate["endpoints"]]
    if endpoint not in ids:
        raise ClosedError(f"endpoint: got {endpoint[:80]!r}, expected one of {', '.join(ids) or 'none registered'}")
    item = closed.aggregate["endpoints"][ids.index(endpoint)]
    found = [result for result in item["results"] if arms is None or list(result["arms"]) == list(arms)]
    if len(found) != 1:
        known = "; ".join(", ".join(result["arms"]) for result in item["results"])
        raise ClosedError(f"arms: got {arms}, which name {len(found)} results of {endpoint}, expected one of: {known}")
    result: dict[str, Any] = found[0]
    return result


def endpoint_value(closed: Closed, endpoint: str, quantity: str, arms: list[str] | None) -> Fraction:
    """One quantity of an endpoint, as stored. Raises ``ClosedError`` where it was not measured."""
    if quantity not in QUANTITIES:
        raise ClosedError(f"quantity: got {str(quantity)[:80]!r}, expected one of {', '.join(QUANTITIES)}")
    result = endpoint_result(closed, endpoint, arms)
    if result["contrast"] is None:
        raise ClosedError(f"{endpoint}: got no result ({result['reason']}), expected a measured endpoint")
    over = result["contrast"]["over_seeds"]
    spread = over["spread"] if isinstance(over["spread"], dict) else {}
    value = {
        "difference": over["task_difference"]["value"], "low": over["interval"]["low"],
        "high": over["interval"]["high"], "seed_sd": spread.get("sd"), "tasks": over["interval"]["tasks"],
        "seeds": over["seeds"]["numerator"],
    }[quantity]  # fmt: skip
    return _exact(value, f"{endpoint}.{quantity}")


def _mean(closed: Closed, checkpoint: str, condition: str, split: str, name: str) -> tuple[Fraction, Fraction]:
    """(sum, number of episodes) of a metric over the final checkpoints that ``checkpoint`` names."""
    arm, _at, seed = checkpoint.partition("@")
    total, count = Fraction(0), 0
    for cell in closed.aggregate["cells"]:
        if (cell["condition"], cell["splits"]) != (condition, [split]):
            continue
        mine = cell["arm"] is None if checkpoint == PARENT else (
            cell["checkpoint_uid"] == checkpoint
            or (cell["is_final"] and cell["arm"] == arm and (not seed or str(cell["run_seed"]) == seed))
        )  # fmt: skip
        if mine:
            mean = cell["means"][name]["micro_episodes"]
            if mean["numerator"] is None:
                raise ClosedError(f"{name}: got no mean ({mean['note']}), expected one")
            total += _exact(mean["numerator"], name)
            count += int(mean["denominator"])
    return total, Fraction(count)


def _rows(closed: Closed, checkpoint: str) -> Any:
    rows = EvaluationItem.objects.filter(plan_version=closed.version)
    arm, _at, seed = checkpoint.partition("@")
    if checkpoint == PARENT:
        return rows.filter(run__isnull=True)
    if len(checkpoint) == 36 and checkpoint.count("-") == 4:
        return rows.filter(checkpoint__uid=checkpoint)
    rows = rows.filter(run__arm__key=arm)
    return rows.filter(run__seed=seed) if seed else rows


def cell_counts(closed: Closed, checkpoint: str, condition: str, split: str, outcome: str) -> tuple[Fraction, Fraction]:
    """(n, N) of an outcome in a cell: of a checkpoint's uid, ``parent``, an arm over all its seeds, or ``arm@seed``.

    For ``reward`` and ``success`` with outcome ``mean.<name>``: (sum, number of episodes).
    """
    if outcome.startswith("mean."):
        name = outcome.removeprefix("mean.")
        if name not in MEANS:
            raise ClosedError(f"outcome: got {outcome[:80]!r}, expected one of mean.{', mean.'.join(MEANS)}")
        found = _mean(closed, checkpoint, condition, split, name)
    else:
        words = [key for key, _word, _n, _of in OUTCOMES]
        if outcome not in words:
            raise ClosedError(f"outcome: got {outcome[:80]!r}, expected one of {', '.join(words)} or mean.reward")
        items = _rows(closed, checkpoint).filter(condition=condition, split=split)
        cells = cells_of(items, {})
        if len(cells) != 1:
            raise ClosedError(
                f"cell: got no item of {checkpoint[:60]!r} under {condition[:40]!r} on {split[:40]!r}, expected one"
            )
        rate = cells[0].rates[outcome]
        found = Fraction(rate.n), Fraction(rate.of)
    if found[1] == 0:
        raise ClosedError(
            f"{outcome}: got no case to count for {checkpoint[:60]!r} under {condition[:40]!r} on {split[:40]!r}; "
            "a rate without exposure is no 0 and is bound as unavailable"
        )
    return found
