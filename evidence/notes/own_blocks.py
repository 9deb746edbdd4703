"""The document of a generated page: fixed prose of the study beside what its execution recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evidence.models import Figure
from evidence.notes import own_trial_blocks as tried
from evidence.notes import own_words as words
from evidence.notes.own_claims import verdict_of
from evidence.notes.own_figures import Own, endpoint_name, endpoints, recorded_days
from evidence.notes.own_outlook import decisions, lead, milestones, problems, writing
from evidence.notes.own_trials import has_trials
from evidence.notes.shapes import SCHEMA, SECTIONS
from runs.models import Execution, Run

T = words.text
Block = dict[str, Any]
_TITLES = {
    "results": T("What was measured", "测得了什么"),
    "meaning": T("What it amounts to", "这些结果意味着什么"),
    "routes": T("Routes, and what did not come out", "路线与未成的结果"),
    "writing": T("State of this text", "文稿状态"),
    "problems": T("Open problems", "待解决问题"),
    "next": T("Next decisions", "接下来的决策"),
    "milestones": T("Milestones", "里程碑"),
    "sources": T("Sources", "来源"),
    "versions": T("Versions and corrections", "版本与更正"),
}


def document_of(own: Own, prose: dict[str, Any], claims: Sequence[str], others: Sequence[Execution]) -> dict[str, Any]:
    """The whole document. ``prose``: fixed texts, whose ``[[.key]]`` name figures of this execution."""
    fixed = _placed(prose, own.prefix)
    days = [at for _kind, at, _body in recorded_days(own.execution)]
    last = max(days).date().isoformat()
    made = {
        "results": _results(own), "meaning": _meaning(claims, fixed), "routes": _routes(own, others),
        "writing": writing(own), "problems": problems(own, fixed["outlook"]), "next": decisions(fixed["outlook"]),
        "milestones": milestones(own),
        "sources": _listed("sources", T("Bytes held here, hashed again by verify.", "字节在本处，verify 会重新哈希。")),
        "versions": _listed("versions", T("Each closed execution gives a new version.", "每次封存的执行产生新版本。")),
    }  # fmt: skip
    sections = []
    for name in SECTIONS:
        body = fixed["sections"].get(name) or {"title": _TITLES[name], **made[name]}
        sections.append({"id": name, **body})
    return {
        "schema": SCHEMA, "study": own.study.slug, "page_date": last, "cutoff": last, "record_ends": last,
        "manuscript": T("None: this page is generated", "没有稿件：本页为生成"), "imported": None,
        "title": fixed["title"], "subtitle": fixed["subtitle"],
        "state": fixed["state"] if own.is_closed else dict(words.OPEN),
        "cards": _cards(own, fixed["outlook"]),
        "names": _names(own, fixed["arms"]), "sections": sections,
    }  # fmt: skip


def _names(own: Own, told: dict[str, Any]) -> list[Block]:
    """Names that the texts may use: the arms of the study, and those of this plan."""
    arms = {**{arm["key"]: T("an arm of the plan", "方案中的臂") for arm in own.plan["arms"]}, **told}
    used = {name: T("a sandbox back end", "沙箱后端") for name in tried.backends(own)} if has_trials(own) else {}
    return [{"text": key, "why": why} for key, why in {**arms, **used}.items()]


def _placed(value: Any, prefix: str) -> Any:
    if isinstance(value, dict):
        return {key: _placed(item, prefix) for key, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, prefix) for item in value]
    return value.replace("[[.", f"[[{prefix}.") if isinstance(value, str) else value


def _cards(own: Own, outlook: dict[str, Any]) -> list[Block]:
    items, minimum, cases = own.key("closure.items"), own.key("gate.minimum"), own.key("gate.cases")
    seeds = T("No endpoint was registered.", "没有登记终点。")
    found = lead(own)
    if found is not None:
        key = own.key(f"{endpoint_name(*found)}.seeds")
        seeds = T(f"Training seeds: [[{key}]].", f"训练种子：[[{key}]]。")
    gate = "gate.cases" in own.bound
    if not own.is_closed:
        return [
            tried.holds(own),
            {"role": "blocked", "text": dict(words.NO_EFFECT_YET), "note": tried.power(own)},
            {"role": "next", "text": dict(words.LET_IT_CLOSE), "note": dict(outlook["within"])},
        ]
    return [
        _holds(own, found),
        {"role": "blocked", "text": dict(outlook["blocked"]), "note": tried.with_power(own, seeds)},
        {
            "role": "next",
            "text": T(
                "Have the claims reviewed independently, then repeat at a larger scale.",
                "请独立评审这些主张，再以更大规模重复。",
            ),
            "note": T(
                f"Gate: [[{cases}]] cases, minimum [[{minimum}]]." if gate else f"Items closed: [[{items}]].",
                f"门槛：[[{cases}]] 例，最少 [[{minimum}]] 例。" if gate else f"已封存条目：[[{items}]]。",
            ),
        },
    ]


def _holds(own: Own, found: tuple[dict[str, Any], dict[str, Any]] | None) -> Block:
    if found is None:
        items = own.key("closure.items")
        text = T(f"The execution is closed with [[{items}]] items.", f"执行已封存，共 [[{items}]] 个条目。")
        return {"role": "holds", "text": text}
    endpoint, result = found
    difference, low, high = (own.key(f"{endpoint_name(endpoint, result)}.{q}") for q in ("difference", "low", "high"))
    said = _who(own, endpoint, result)
    verdict = words.VERDICTS[verdict_of(result)]
    return {
        "role": "holds",
        "text": T(
            f"{said['en'][:1].upper()}{said['en'][1:]}, [[{difference}]] ([[{low}]] to [[{high}]]); {verdict['en']}.",
            f"{said['zh']}，[[{difference}]]（[[{low}]] 至 [[{high}]]）；{verdict['zh']}。",
        ),
        "note": T("The leading registered endpoint, whichever way it went.", "登记在前的终点，无论方向如何。"),
    }


def _columns(own: Own) -> list[str]:
    return ["parent", *(arm["key"] for arm in own.plan["arms"])]


def _header(column: str) -> dict[str, str]:
    return dict(words.PARENT) if column == "parent" else T(f"{{{{name:{column}}}}}", f"{{{{name:{column}}}}}")


def _results(own: Own) -> Block:
    found: list[Block] = [*tried.signal(own), *tried.changed(own), *tried.effect_head(own), _figures(own)]
    for condition in own.plan["evaluation"]["conditions"]:
        found.append(_outcomes(own, condition))
    if lead(own) is not None:
        found.append(_endpoints(own))
    bars = [
        {"figure": own.key(name), "of": None, "label": T(f"recovery {{{{name:{arm}}}}}", f"恢复 {{{{name:{arm}}}}}")}
        for arm in (item["key"] for item in own.plan["arms"])
        if own.bound.get(name := f"cell.stress.{arm}.recovered") == Figure.BOUND
    ]
    if bars:
        found.append({"type": "bars", "items": bars})
    found.append(_details(own))
    return {"summary": dict(words.COUNTS if own.is_closed else words.COUNTS_OPEN), "blocks": found}


def _figures(own: Own) -> Block:
    items = [
        {
            "figure": own.key(f"{endpoint_name(endpoint, result)}.difference"),
            "label": _who(own, endpoint, result),
            "note": _verdict(own, result),
        }
        for endpoint, result in endpoints(own)
        if endpoint["compare"]["kind"] == "pair"
    ]
    items.append(
        {
            "figure": own.key("closure.items"),
            "label": T("evaluation items closed", "封存的评测条目"),
            "note": T(f"[[{own.key('closure.captures')}]] captures", f"[[{own.key('closure.captures')}]] 个 capture"),
        }
    )
    return {"type": "figures", "items": items}


def _verdict(own: Own, result: dict[str, Any]) -> dict[str, str]:
    """The word of a result; before closing that it is awaited."""
    return dict(words.VERDICTS[verdict_of(result)] if own.is_closed else words.AWAITED)


def _who(own: Own, endpoint: dict[str, Any], result: dict[str, Any]) -> dict[str, str]:
    what, where = own.what(endpoint), own.where(endpoint["condition"])
    names = [f"{{{{name:{arm}}}}}" for arm in result["arms"]]
    if endpoint["compare"]["kind"] == "pair":
        en, zh = f"{names[1]} minus {names[0]}", f"{names[1]} 减 {names[0]}"
    else:
        en, zh = f"{names[0]} minus parent", f"{names[0]} 减父检查点"
    return T(f"{what['en']}, {where['en']}: {en}", f"{where['zh']}，{what['zh']}：{zh}")


def _outcomes(own: Own, condition: str) -> Block:
    """One table: outcomes in rows, the parent and the arms in columns."""
    columns = _columns(own)
    listed = words.OUTCOMES if condition == "stress" else words.STANDARD_OUTCOMES
    where = own.where(condition)
    rows = [
        [{"text": dict(own.outcome(outcome))}]
        + [{"figure": own.key(f"cell.{condition}.{column}.{outcome}")} for column in columns]
        for outcome in listed
    ]
    head = T(f"Held-out, {where['en']}", f"留出，{where['zh']}")
    if where == words.HELD_OUT:
        head = T("Outcomes on held-out tasks", "留出任务上的结果")
    return {"type": "table", "columns": [head, *map(_header, columns)], "rows": rows}


def _endpoints(own: Own) -> Block:
    rows = []
    for endpoint, result in endpoints(own):
        keys = {name: own.key(f"{endpoint_name(endpoint, result)}.{name}") for name in words.QUANTITIES}
        rows.append(
            [
                {"text": _who(own, endpoint, result)},
                {"figure": keys["difference"]},
                {"text": T(f"[[{keys['low']}]] to [[{keys['high']}]]", f"[[{keys['low']}]] 至 [[{keys['high']}]]")},
                {"figure": keys["tasks"]},
                {"figure": keys["seeds"]},
                {"text": _verdict(own, result)},
            ]
        )
    columns = [
        T("Registered endpoint", "登记的终点"), T("Difference", "差"), T("Interval over tasks", "任务上的区间"),
        T("Tasks", "任务"), T("Training seeds", "训练种子"), T("Verdict by the plan's rules", "按方案规则的判读"),
    ]  # fmt: skip
    return {"type": "table", "columns": columns, "rows": rows}


def _details(own: Own) -> Block:
    blocks: list[Block] = []
    steps = [arm["key"] for arm in own.plan["arms"] if f"arm.{arm['key']}.steps" in own.bound]
    if steps:
        said = [f"{{{{name:{arm}}}}} [[{own.key(f'arm.{arm}.steps')}]]" for arm in steps]
        text = T(
            f"Optimiser steps over the runs of each arm: {', '.join(said)}. They are outcomes downstream of the "
            "treatment.",
            f"各臂所有运行的优化步：{'、'.join(said)}。它们是处理之后的下游结果。",
        )
        blocks.append({"type": "paragraph", "text": text})
    if "plan.level" in own.bound:
        level = own.key("plan.level")
        text = T(
            f"Intervals hold [[{level}]] and come from resampling tasks, each with all its repeats.",
            f"区间水平 [[{level}]]，由任务重采样得到，每个任务保留其全部重复。",
        )
        blocks.append({"type": "paragraph", "text": text})
    blocks += tried.cost(own)
    jobs = own.key("closure.jobs")
    text = T(f"[[{jobs}]] jobs made up the execution.", f"该执行由 [[{jobs}]] 个作业组成。")
    blocks.append({"type": "paragraph", "text": text})
    return {"type": "details", "summary": T("Scopes and finer figures", "口径与细目"), "blocks": blocks}


def _meaning(claims: Sequence[str], fixed: dict[str, Any]) -> Block:
    cannot = fixed["cannot"]
    return {
        "summary": T(
            "Each claim says no more than its evidence and the plan's rules allow.", "主张不超出证据与方案规则。"
        ),
        "blocks": [
            {"type": "claims", "items": list(claims)},
            {
                "type": "paragraph",
                "text": T(f"What this study cannot show: {cannot['en']}", f"本研究不能说明：{cannot['zh']}"),
            },
        ],
    }


def _routes(own: Own, others: Sequence[Execution]) -> Block:
    """Negative results, runs that ended otherwise than planned, and other executions."""
    rows = []
    for endpoint, result in endpoints(own) if own.is_closed else ():
        if verdict_of(result) not in ("improvement", "equivalence", "non_inferiority"):
            verdict = words.VERDICTS[verdict_of(result)]
            tail = words.AGAINST if result["opposite_direction"] else T("", "")
            rows.append(
                [
                    {"text": _who(own, endpoint, result)},
                    {"text": T(verdict["en"] + tail["en"], verdict["zh"] + tail["zh"])},
                    {"text": T("Kept as it came out.", "按结果保留。")},
                ]
            )
    for run in Run.objects.filter(execution=own.execution).select_related("head", "arm").order_by("pk"):
        if own.is_closed and run.head.state != "completed":
            state = T(f"a run ended as {run.head.state}", f"某次运行以 {run.head.state} 结束")
            rows.append(
                [{"text": _header(run.arm.key)}, {"text": state}, {"text": T("Kept, never merged.", "保留，不并入。")}]
            )
    for other in others:
        slug = other.plan_version.plan.slug
        rows.append(
            [
                {"text": T(f"{{{{code:{slug}}}}}", f"{{{{code:{slug}}}}}")},
                {"text": T("another closed execution of this study", "本研究另有的封存执行")},
                {
                    "text": T(
                        "It has claims of its own; its results are not pooled here.", "它有自己的主张；结果不在此合并。"
                    )
                },
            ]
        )
    columns = [T("Route", "路线"), T("What came out", "结果"), T("Decision", "决定")]
    return {
        "summary": T("Results without a gain stand beside the others.", "没有收益的结果与其他结果并列。"),
        "blocks": [{"type": "table", "columns": columns, "rows": rows}] if rows else [],
    }


def _listed(kind: str, summary: dict[str, str]) -> Block:
    return {"summary": summary, "blocks": [{"type": kind}]}
