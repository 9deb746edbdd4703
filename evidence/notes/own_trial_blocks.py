"""Blocks of what trials showed: the signal of the pilot, what changed in each arm, what it cost, and reservations.

Every table has the pilot and the arms beside each other and adds nothing up across them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evidence.models import Figure
from evidence.notes import own_trial_words as words
from evidence.notes.own_figures import Own
from evidence.notes.own_trials import (
    FUNNEL,
    PILOT,
    SIGNAL,
    TOOK,
    Line,
    Share,
    arms_tried,
    backends,
    has_pilot,
    has_trials,
    reads_d,
)
from evidence.notes.own_words import Text, text

T = text
Block = dict[str, Any]
_NEVER_D = T("never reads D", "从不读 D")
_NOT_TRIED = T("adds no term", "不加项")
_SIGNAL = T(
    "Is there a signal? The pilot takes a retained edit of finished trajectories back, ahead of any update, and runs "
    "the hidden tests anew. Arms are tried as they train; they stand apart and are added to nothing.",
    "有信号吗？试点在任何更新之前撤回完成轨迹中所保留的编辑，并重新运行隐藏测试。各臂随训练试验，单独列出，不作相加。",
)
_CHANGED = T(
    "Did parameters change? That an update moved them says that a term was there, and nothing of an effect.",
    "参数改变了吗？更新改变了参数，只说明有项可加，与有没有效果无关。",
)
_OF_PILOT = (
    "failed.rate", "failed.positive", "positive.tests", "positive.regression", "positive.tasks", "failed.negative",
    "succeeded.rate", "ratio", "shrinkage", "capped.rate", "touched", "empty.rate", "elsewhere.rate", "replays.rate",
    "repeats.rate", "missing.rate", "missing.failed.rate",
)  # fmt: skip
_SHOWN = ("planned", "format_error", "no_eligible_block", "no_original_utility", "trial_incomplete", "never",
          "chosen_only", "usable", "zero", "positive", "negative", "nonzero.rate")  # fmt: skip
_MAY_LACK = ("never", "chosen_only")  # lines that stand only where some query has that fate


def signal(own: Own) -> list[Block]:
    """Whether there is a signal: cards, the funnel of pilot and arms, and what the pilot's signal is made of."""
    if not has_trials(own):
        return []
    found: list[Block] = []
    if has_pilot(own):
        found += [{"type": "paragraph", "text": dict(_SIGNAL)}, _cards(own)]
    found.append(_funnel(own))
    if has_pilot(own):
        items = [_bar(own, "usable", "usable"), _bar(own, "nonzero", "nonzero")]
        found += [{"type": "bars", "items": items}, _pilot(own)]
    return found


def _cards(own: Own) -> Block:
    def item(name: str, label: Text, note: Text) -> Block:
        return {"figure": own.key(f"{PILOT}.{name}"), "label": dict(label), "note": dict(note)}

    key = {name: f"[[{own.key(f'{PILOT}.{name}')}]]" for name in ("nonzero", "usable", "planned", "capped", "chosen")}
    items = [
        item("nonzero.share", T("in the pilot, taking an edit back changed U", "试点中，撤回编辑改变了 U"),
             T(f"{key['nonzero']} of {key['usable']} usable queries",
               f"{key['usable']} 个可用查询中的 {key['nonzero']} 个")),
        item("usable.share", T("of the pilot's queries have a D", "试点的查询有 D"),
             T(f"{key['usable']} of {key['planned']} planned", f"计划的 {key['planned']} 个中的 {key['usable']} 个")),
        item("capped.rate", T("differences that the cap cuts", "被上限截去的差异"),
             T("their sign and place are kept", "符号与位置得以保留")),
        item("ratio", T("of the tokens lie in the chosen turn, median", "词元位于所选轮次，中位数"),
             T(f"over {key['chosen']} queries with a chosen block", f"涉及 {key['chosen']} 个已选出编辑块的查询")),
    ]  # fmt: skip
    return {"type": "figures", "items": items}


def holds(own: Own) -> Block:
    """The card of what holds while only the pilot has ended."""
    some, of = (f"[[{own.key(f'{PILOT}.{name}')}]]" for name in ("nonzero", "usable"))
    return {
        "role": "holds",
        "text": T(
            f"The pilot has ended: taking an edit back changed U in {some} of {of} usable queries.",
            f"试点已结束：{of} 个可用查询中，撤回编辑在 {some} 个里改变了 U。",
        ),
        "note": T("A signal of the mechanism; it says nothing of an effect.", "机制的信号；与有没有效果无关。"),
    }


def _bar(own: Own, name: str, line: str) -> Block:
    return {"figure": own.key(f"{PILOT}.{name}"), "of": own.key(f"{PILOT}.planned"), "label": dict(words.LINES[line])}


def _scopes(own: Own) -> Sequence[tuple[str, bool, Text]]:
    """(key, whether D is measured, header) of the pilot and of every arm that is tried."""
    pilot = [(PILOT, True, words.PILOT)] if has_pilot(own) else []
    return pilot + [
        (f"arm.{arm}", reads_d(own, arm), T(f"{{{{name:{arm}}}}}", f"{{{{name:{arm}}}}}")) for arm in arms_tried(own)
    ]


def _made_of_d(name: str) -> bool:
    known: Sequence[Line | Share] = (*FUNNEL, *SIGNAL)
    return next(item.d for item in known if item.name == name)


def _funnel(own: Own) -> Block:
    scopes, rows = _scopes(own), []
    for name in _SHOWN:
        some = any(own.values.get(f"{key}.{name}") not in (None, "0") for key, _d, _head in scopes)
        if name in _MAY_LACK and not some:
            continue
        d = _made_of_d(name)
        rows.append(
            [
                {"text": dict(words.LINES[name])},
                *(
                    {"figure": own.key(f"{key}.{name}")} if measures or not d else {"text": dict(_NEVER_D)}
                    for key, measures, _head in scopes
                ),
            ]
        )
    head = T("Every query and its fate", "每个查询及其去向")
    return {"type": "table", "columns": [dict(head), *(dict(title) for _key, _d, title in scopes)], "rows": rows}


def _pilot(own: Own) -> Block:
    rows = [
        [
            {"text": dict(words.LINES[name])},
            {"figure": own.key(f"{PILOT}.{name}")},
            {"text": dict(words.PER.get(name, words.ALL_PLANNED))},
        ]
        for name in _OF_PILOT
    ]
    columns = [
        T("What the pilot's signal is made of", "试点信号的构成"),
        T("Value", "值"),
        T("Counted over", "计数范围"),
    ]
    return {"type": "table", "columns": columns, "rows": rows}


def changed(own: Own) -> list[Block]:
    """Whether parameters changed, and what was added to the advantage. Says nothing of an effect."""
    if not has_trials(own):
        return []
    rows = []
    for arm in (item["key"] for item in own.plan["arms"]):
        tried, d = arm in arms_tried(own), arm in arms_tried(own) and reads_d(own, arm)
        cells: list[Block] = [{"text": T(f"{{{{name:{arm}}}}}", f"{{{{name:{arm}}}}}")}]
        for name, needs, absent in (
            ("changed.rate", True, _NOT_TRIED), ("applied", tried, _NOT_TRIED), ("capped.rate", tried, _NOT_TRIED),
            ("shrinkage", d, _NEVER_D if tried else _NOT_TRIED), ("masses.rate", d, _NEVER_D if tried else _NOT_TRIED),
            ("edit_only", True, _NOT_TRIED), ("steps", f"arm.{arm}.steps" in own.bound, _NOT_TRIED),
        ):  # fmt: skip
            cells.append({"figure": own.key(f"arm.{arm}.{name}")} if needs else {"text": dict(absent)})
        rows.append(cells)
    columns = [
        T("Arm", "臂"), T("Updates that changed them", "改变了参数的更新"),
        T("Terms applied", "施加的项"), T("Cut by the cap", "被上限截去"), T("Median of s", "s 的中位数"),
        T("Masses as defined", "质量符合定义"), T("Groups trained by edit credit alone", "只由编辑信用训练的组"),
        T("Optimiser steps", "优化步"),
    ]  # fmt: skip
    return [{"type": "paragraph", "text": dict(_CHANGED)}, {"type": "table", "columns": columns, "rows": rows}]


def effect_head(own: Own) -> list[Block]:
    """What stands ahead of the effect cells: that no count above answers for them, and the power that was stated."""
    if not has_trials(own):
        return []
    said = T(
        "Was an effect measured? The counts above answer nothing here: only the closed evaluation on held-out tasks "
        "fills these cells.",
        "测得效果了吗？以上计数在此不作答：只有留出任务上已封存的评估才填入这些单元。",
    )
    return [{"type": "paragraph", "text": T(f"{said['en']} {power(own)['en']}", f"{said['zh']}{power(own)['zh']}")}]


def power(own: Own) -> Text:
    """The power that the plan states, in a sentence."""
    if own.bound.get("plan.detectable") != Figure.BOUND:
        return T(
            "At this scale the plan's seeds allow no statement on a difference between arms, whatever its size.",
            "在此规模下，方案的种子数不足以判断臂间之差，无论大小。",
        )
    names = ("detectable", "detectable.seeds", "detectable.sd", "detectable.power")
    least, seeds, spread, wanted = (f"[[{own.key(f'plan.{name}')}]]" for name in names)
    return T(
        f"With {seeds} an arm and an assumed spread of {spread} between seeds, the plan can tell arms apart from a "
        f"difference of {least} upwards, at a power of {wanted}; smaller differences stay open.",
        f"以每臂 {seeds}、假定种子间离散 {spread} 计，方案在功效 {wanted} 下能分辨 {least} 及以上的臂间之差；"
        "更小的差仍未有定论。",
    )


def with_power(own: Own, said: Text) -> Text:
    """A sentence with the power behind it where the plan has trials."""
    return T(f"{said['en']} {power(own)['en']}", f"{said['zh']}{power(own)['zh']}") if has_trials(own) else said


def cost(own: Own) -> list[Block]:
    """What it took, for the details."""
    if not has_trials(own):
        return []
    rows = []
    for key, d, head in _scopes(own):
        cells: list[Block] = [{"text": dict(head)}]
        for line in TOOK:
            if f"{key}.{line.name}" in own.bound:
                cells.append({"figure": own.key(f"{key}.{line.name}")})
            else:
                cells.append({"text": dict(_NEVER_D if line.d and not d else T("not kept apart", "未单独记录"))})
        rows.append(cells)
    columns = [T("Cost", "成本"), *(dict(words.SHORT[line.name]) for line in TOOK)]
    said = T(
        "Service time holds set-up, verification and clean-up of a trial, and no waiting. Arms ran beside each other "
        "on a shared machine: no difference between their times is read as such.",
        "服务时间含每次试验的准备、验证与清理，不含等待。各臂在共用的机器上并行：用时之差不作解读。",
    )
    return [{"type": "paragraph", "text": said}, {"type": "table", "columns": columns, "rows": rows}]


def reservations(own: Own) -> list[Block]:
    """What speaks against reading more into the trials than they hold, as open problems with their evidence."""
    if not has_pilot(own):
        return []
    key = {line: f"[[{own.key(f'{PILOT}.{line}')}]]" for line in _RESERVED}
    found = [_positive(key)] if own.value(f"{PILOT}.failed.positive") else []
    if own.value(f"{PILOT}.capped"):
        found.append(_capped(key))
    return [*found, _backend(own, key), _relocation()]


_RESERVED = ("failed.positive", "failed.usable", "positive.tests", "positive.regression", "positive.tasks", "capped",
             "nonzero", "executed", "unisolated", "complete")  # fmt: skip


def _problem(category: str, priority: int, **texts: Text) -> Block:
    return {"category": category, "priority": priority, **{name: dict(value) for name, value in texts.items()}}


def _positive(key: dict[str, str]) -> Block:
    return _problem(
        "research", 1,
        title=T("Positive D among failed originals", "失败原件中的正 D"),
        affects=T("What the credit of arms {{name:B}} and {{name:M}} rewards.",
                  "{{name:B}} 臂与 {{name:M}} 臂的信用所奖励的内容。"),
        evidence=T(
            f"{key['failed.positive']} of {key['failed.usable']} failed originals over {key['positive.tasks']} tasks: "
            f"{key['positive.tests']} by fail-to-pass tests, {key['positive.regression']} by the regression indicator "
            "alone.",
            f"{key['failed.usable']} 个失败原件中的 {key['failed.positive']} 个，涉及 {key['positive.tasks']} 个任务："
            f"{key['positive.tests']} 个来自应由失败转通过的测试，{key['positive.regression']} 个仅来自回归指示。",
        ),
        action=T("Read these trials on the page of edit credit.", "在编辑信用页面逐个查看这些试验。"),
        done=T("Each is explained by the tests that flipped.", "每个都由翻转的测试得到解释。"),
    )  # fmt: skip


def _capped(key: dict[str, str]) -> Block:
    return _problem(
        "research", 2,
        title=T("The cap takes size away", "上限抹去大小"),
        affects=T("Any statement on how large a difference was.", "关于差异大小的任何说法。"),
        evidence=T(
            f"{key['capped']} of {key['nonzero']} differences are cut: sign and place are kept, size is not.",
            f"{key['nonzero']} 个差异中 {key['capped']} 个被截：保留符号与位置，不保留大小。",
        ),
        action=T("Freeze a plan with another cap ahead of the run.", "在运行前冻结另一上限的方案。"),
        done=T("Endpoints of both plans stand beside each other.", "前后方案的终点并列。"),
    )  # fmt: skip


def _backend(own: Own, key: dict[str, str]) -> Block:
    bare = bool(own.value(f"{PILOT}.unisolated"))
    action = (
        T("Run the trials again where isolation works.", "在能隔离的环境重新执行试验。")
        if bare
        else T("Repeat on another host; compare labels, not seconds.", "在另一主机重复；比较标签，不比秒数。")
    )
    names = backends(own)
    by = {name: f"{{{{name:{name}}}}} [[{own.key(f'{PILOT}.backend.{name}')}]]" for name in names}
    told = T(f" By back end: {', '.join(by.values())}.", f"按后端：{'、'.join(by.values())}。") if by else T("", "")
    return _problem(
        "execution", 1 if bare else 3,
        title=T("Sandbox back end", "沙箱后端"),
        affects=T("Every verdict of a trial, and its time.", "每次试验的裁定及其用时。"),
        evidence=T(
            f"{key['unisolated']} of {key['executed']} trials ran without isolation; {key['complete']} gave a complete "
            f"report.{told['en']} Replays on the same host share its faults.",
            f"{key['executed']} 次试验中 {key['unisolated']} 次未隔离；{key['complete']} 次报告完整。"
            f"{told['zh']}同一主机上的重放会重复其自身的缺陷。",
        ),
        action=action,
        done=T("Labels agree across back ends.", "不同后端的标签一致。"),
    )  # fmt: skip


def _relocation() -> Block:
    return _problem(
        "research", 2,
        title=T("No relocation control", "没有移位对照"),
        affects=T("Any attribution to the place of the credit.", "归因于信用位置的任何说法。"),
        evidence=T("The plan has no arm that puts the same mass on another turn.",
                   "方案没有把同样质量放在别的轮次的臂。"),
        action=T("Freeze a plan with such an arm, and with plain test feedback.",
                 "冻结含此臂及只用测试反馈之臂的方案。"),
        done=T("Both are evaluated on the same held-out tasks.", "都在同样的留出任务上评估。"),
    )  # fmt: skip
