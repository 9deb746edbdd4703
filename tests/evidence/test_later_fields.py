"""verify: a plan frozen before a field existed is what it was; one that says another value is compared with it."""

from __future__ import annotations

import copy
from typing import Any

from evidence.checks.plans import without_later
from tests.contracts.test_spec import BINDINGS
from tests.runs.scripted_plan import document
from workbench.contracts.canonical import digest
from workbench.contracts.spec import freeze_body


def older() -> dict[str, Any]:
    """A body as it was frozen before credit from edits existed."""
    body = freeze_body(document(), BINDINGS)
    del body["plan"]["trials"]
    for objective in (body["plan"]["objective"], *(arm["config"]["objective"] for arm in body["arms"])):
        del objective["edit_weight"], objective["edit_cap"]
    for arm in body["arms"]:
        arm["config_sha256"] = digest(arm["config"])
    names = ("objective.edit_weight", "objective.edit_cap")
    body["pairs"][0]["equal"] = [item for item in body["pairs"][0]["equal"] if item[0] not in names]
    return body


def test_a_body_without_the_later_fields_is_rebuilt_without_them() -> None:
    body = older()
    whole = freeze_body(copy.deepcopy(body["plan"]), BINDINGS)
    assert digest(whole) != digest(body)
    assert digest(without_later(whole, body)) == digest(body)


def test_a_body_that_holds_them_is_compared_with_them() -> None:
    body = freeze_body(document(objective={"edit_cap": 2.0}), BINDINGS)
    assert digest(without_later(freeze_body(body["plan"], BINDINGS), body)) == digest(body)
    changed = copy.deepcopy(body)
    changed["arms"][0]["config"]["objective"]["edit_cap"] = 3.0
    assert digest(without_later(freeze_body(body["plan"], BINDINGS), changed)) != digest(changed)
