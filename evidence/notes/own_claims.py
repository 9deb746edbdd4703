"""Claims of a closed execution, each worded by what the plan's rules allow and capped by its evidence.

A registered endpoint gives one claim whichever way it went: a result that is not distinguished, or that runs
against the registered direction, is said so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evidence.actions.claims import ClaimRefused, add_claim
from evidence.actions.links import add_link
from evidence.models import Claim, Figure, Link
from evidence.notes import own_words as words
from evidence.notes.own_figures import Given, Own, compared, endpoint_name, endpoints
from evidence.status import derived_once

ANEW = "written anew from the closed execution"
DESCRIPTION = "description"
LAST = "closure"  # the claim that is written after all others


def claim_all(own: Own, reach: words.Text) -> list[str]:
    """Keys of the claims that every study has, the endpoints' own before the others; that of closing once it is."""
    keys = [_of_endpoint(own, endpoint, result, reach) for endpoint, result in endpoints(own)]
    if "gate.cases" in own.bound:
        keys.append(_gate(own))
    if "preflight.groups" in own.bound:
        keys.append(_preflight(own))
    if own.is_closed:
        keys.append(_closure(own))
    return keys


def write_claim(
    own: Own, name: str, text: words.Text, kind: str, evidence: Sequence[tuple[str, str, words.Text]], **given: Any
) -> str:
    """Write one claim and link its figures; what a person has written since is left as it is.

    Before the execution is closed nothing that is written already is written anew.
    """
    with derived_once(at=own.at):
        return _written(own, own.key(name), text, kind, evidence, given)


def _written(
    own: Own, key: str, text: words.Text, kind: str, evidence: Sequence[tuple[str, str, words.Text]], given: Given
) -> str:
    claim = Claim.objects.filter(study=own.study, key=key).select_related("current").first()
    mine = claim is not None and claim.current is not None and claim.current.actor_id == own.by.pk
    if claim is None or (mine and own.is_closed):
        columns = {"text_en": text["en"], "text_zh": text["zh"], "by": own.by, "at": own.at, **given}
        columns["reason"] = ANEW if claim else ""
        try:
            add_claim(own.study, key, kind=kind, **columns)
        except ClaimRefused:
            if kind == DESCRIPTION:
                raise
            add_claim(own.study, key, kind=DESCRIPTION, **columns)  # what was counted may always be said
    claim = Claim.objects.get(study=own.study, key=key)
    for figure_key, relation, reach in evidence:
        figure = Figure.objects.get(study=own.study, key=figure_key)
        if not Link.objects.filter(claim=claim, figure=figure, relation=relation).exists():
            add_link(
                claim, figure=figure, relation=relation, reach_en=reach["en"], reach_zh=reach["zh"], by=own.by,
                at=own.at,
            )  # fmt: skip
    return key


def verdict_of(result: dict[str, Any]) -> str:
    """The verdict word that an endpoint's page shows."""
    return str(result["verdict"]) if result["verdict"] in words.VERDICTS else "observed_on_this_frozen_sample"


def _of_endpoint(own: Own, endpoint: dict[str, Any], result: dict[str, Any], reach: words.Text) -> str:
    name, verdict = endpoint_name(endpoint, result), verdict_of(result)
    where, what = own.where(endpoint["condition"]), own.what(endpoint)
    if where != words.HELD_OUT:
        where = words.text(f"on held-out tasks {where['en']}", f"留出任务、{where['zh']}")
    shown = {quantity: f"[[{own.key(f'{name}.{quantity}')}]]" for quantity in words.QUANTITIES}
    who = compared(endpoint, [f"{{{{name:{arm}}}}}" for arm in result["arms"]])
    if result["contrast"] is None:
        why = words.UNMEASURED if own.is_closed else words.WAITING
        text = words.text(
            f"{_capital(where['en'])}, {who['en']} in {what['en']}: {shown['difference']}, {why['en']}.",
            f"{where['zh']}，{who['zh']}的{what['zh']}：{shown['difference']}，{why['zh']}。",
        )
        return write_claim(own, name, text, DESCRIPTION, [], **_columns(reach), plan_version=own.version)
    tail = words.joined(words.TAILS[verdict], *_qualified(own, endpoint, result))
    text = words.text(
        f"{_capital(where['en'])}, {who['en']} in {what['en']} is {shown['difference']} ({shown['low']} to "
        f"{shown['high']}), over {shown['tasks']} tasks (training seeds: {shown['seeds']}){tail['en']}.",
        f"{where['zh']}，{who['zh']}的{what['zh']}差为 {shown['difference']}（{shown['low']} 至 "
        f"{shown['high']}），涉及 {shown['tasks']} 个任务（训练种子：{shown['seeds']}）{tail['zh']}。",
    )
    kind = "negative" if result["opposite_direction"] else words.KINDS.get(verdict, DESCRIPTION)
    evidence = [(own.key(f"{name}.difference"), "supports", words.REACH)]
    evidence += [(own.key(f"{name}.{end}"), "bounds", words.REACH) for end in ("low", "high")]
    return write_claim(
        own, name, text, kind, evidence, **_columns(reach), plan_version=own.version, endpoint=endpoint["id"]
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _qualified(own: Own, endpoint: dict[str, Any], result: dict[str, Any]) -> Iterator[words.Text]:
    """What a measured endpoint must say beside its verdict: its direction, an interval without width, its power."""
    if result["opposite_direction"]:
        yield words.AGAINST
    interval = result["contrast"]["over_seeds"]["interval"]
    if interval["low"] is not None and interval["low"] == interval["high"]:
        yield words.NO_WIDTH
    stated = own.plan.get("smallest_detectable_difference") or {}
    primary = stated.get("endpoint") or own.plan["endpoints"][0]["id"]
    if primary == endpoint["id"] and "plan.detectable" in own.bound:
        if own.bound["plan.detectable"] == Figure.BOUND:
            token = f"[[{own.key('plan.detectable')}]]"
            yield words.text(words.POWER["en"].format(token), words.POWER["zh"].format(token))
        else:
            yield words.POWERLESS


def _columns(reach: words.Text) -> dict[str, str]:
    return {
        "scope_en": reach["en"], "scope_zh": reach["zh"], "denominator_en": words.PAIRED["en"],
        "denominator_zh": words.PAIRED["zh"], "missing_en": words.MISSING["en"], "missing_zh": words.MISSING["zh"],
    }  # fmt: skip


def _gate(own: Own) -> str:
    cases, minimum = own.key("gate.cases"), own.key("gate.minimum")
    met = own.receipt("gate.refused") is None
    after = (
        words.text("so that the gated arm ran", "因此该臂得以运行")
        if met
        else words.text("so that the gated arm was not run", "因此该臂没有运行")
    )
    text = words.text(
        f"The gate counted [[{cases}]] actionable cases and asks for [[{minimum}]], {after['en']}.",
        f"门槛计得 [[{cases}]] 例可作用情形，要求 [[{minimum}]] 例，{after['zh']}。",
    )
    reach = words.text("Says nothing of what the clamp does.", "与钳制有没有作用无关。")
    return write_claim(own, "gate", text, "mechanism" if met else "negative", [(cases, "supports", reach)])


def _preflight(own: Own) -> str:
    silent, groups = own.key("preflight.silent"), own.key("preflight.groups")
    text = words.text(
        f"Of [[{groups}]] groups collected ahead of training, [[{silent}]] had no variance of reward.",
        f"训练前收集的 [[{groups}]] 组中，[[{silent}]] 组没有奖励方差。",
    )
    reach = words.text("A preflight of the signal; neither convergence nor collapse.", "信号预检；既非收敛也非崩溃。")
    return write_claim(own, "preflight", text, "mechanism", [(silent, "supports", reach)])


def _closure(own: Own) -> str:
    keys = {name: own.key(f"closure.{name}") for name in ("jobs", "items", "captures")}
    text = words.text(
        f"The execution is closed: [[{keys['jobs']}]] jobs, [[{keys['items']}]] evaluation items and "
        f"[[{keys['captures']}]] captures are bound by hash.",
        f"该执行已封存：[[{keys['jobs']}]] 个作业、[[{keys['items']}]] 个评测条目与 [[{keys['captures']}]] 个 "
        "capture 按哈希绑定。",
    )
    reach = words.text("Closing adds no statistical meaning.", "封存不增加统计含义。")
    return write_claim(own, LAST, text, "environment", [(keys["items"], "supports", reach)])
