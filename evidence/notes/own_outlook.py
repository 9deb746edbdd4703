"""Sections of a generated page that look ahead or back: the text, open problems, decisions, milestones."""

from __future__ import annotations

import datetime
from typing import Any

from evidence.models import Source
from evidence.notes import own_trial_blocks as tried
from evidence.notes import own_words as words
from evidence.notes.own_figures import Own, endpoint_name, endpoints, recorded_days

T = words.text
Block = dict[str, Any]
_COURSE = {
    "execution.started": T("Execution started", "执行开始"),
    "preflight.passed": T("Signal preflight passed", "信号预检通过"),
    "preflight.refused": T("Signal preflight refused", "信号预检拒绝"),
    "gate.met": T("Gate met", "门槛通过"),
    "gate.refused": T("Gate not met: the arm is not run", "门槛未过：该臂不运行"),
    "execution.closed": T("Execution closed", "执行封存"),
}


def lead(own: Own) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The endpoint that the plan lists ahead of the others; None where it registers none."""
    return next(endpoints(own), None)


def writing(own: Own) -> Block:
    """What there is of a text."""
    label = [own.key("summary")] if _cited(own, "summary") else []
    return {
        "summary": T("There is no manuscript; this page is its own text.", "没有稿件；本页即文本。"),
        "blocks": [
            {
                "type": "progress",
                "items": [
                    {
                        "part": T("Results and their scopes", "结果与口径"),
                        "state": T("generated and bound", "已生成并绑定"),
                        "gap": T("Discussion by people.", "尚缺人的讨论。"),
                        "sources": label,
                    }
                ],
            }
        ],
    }


def _cited(own: Own, name: str) -> bool:
    return Source.objects.filter(study=own.study, reference=own.key(name)).exists()


def problems(own: Own, outlook: dict[str, Any]) -> Block:
    """What keeps the claims where they are, the reservations of trials among them."""
    found, reach = lead(own), T("No endpoint was registered.", "没有登记终点。")
    if found is not None:
        seeds, tasks = (own.key(f"{endpoint_name(*found)}.{name}") for name in ("seeds", "tasks"))
        reach = T(f"Training seeds: [[{seeds}]]; tasks: [[{tasks}]].", f"训练种子：[[{seeds}]]；任务：[[{tasks}]]。")
    items: list[Block] = [
        {
            "category": "evidence", "priority": 1, "title": T("No independent review yet", "尚无独立评审"),
            "affects": T("The status of every claim on this page.", "本页每个主张的状态。"),
            "evidence": T("Generated claims stay capped until then.", "生成的主张在此之前有上限。"),
            "action": T("Take the review queue.", "处理评审队列。"),
            "done": T("Each claim carries an independent verdict.", "每个主张都有独立判定。"),
        },
        {
            "category": "research", "priority": 2, "title": T("How far the sample reaches", "样本能说到哪里"),
            "affects": T("Any statement over seeds or tasks.", "涉及种子或任务的任何结论。"),
            "evidence": reach,
            "action": dict(outlook["action"]),
            "done": T("Endpoints are judged over several seeds.", "终点按多个种子判读。"),
        },
        *tried.reservations(own),
    ]  # fmt: skip
    items.sort(key=lambda item: int(item["priority"]))
    summary = T("What keeps the claims where they are.", "是什么让主张停在当前状态。")
    return {"summary": summary, "blocks": [{"type": "problems", "items": items}]}


def decisions(outlook: dict[str, Any]) -> Block:
    """What to do, in order."""
    items = [
        {
            "title": T("Review", "评审"),
            "text": T("Judge each claim on its links.", "逐条依据链接评判主张。"),
            "product": T("Verdicts with reasons.", "附理由的判定。"),
        },
        {
            "title": T("Repeat", "重复"),
            "text": T("At the full scale, under a plan frozen ahead.", "以 full 规模、事先冻结的方案。"),
            "product": T("A closed execution, and this page anew.", "封存的执行与重新生成的本页。"),
        },
    ]
    strip = {
        "type": "strip", "decision": True,
        "steps": [
            {"title": T("Reviewed?", "已评审？"), "text": T("If not, claims stay capped.", "否则主张仍有上限。")},
            {"title": T("Several seeds?", "多个种子？"), "text": T("If not, noise is unknown.", "否则噪声未知。")},
            {"title": T("Distinguished?", "能区分？"), "text": T("If not, say so.", "否则如实说明。")},
            {"title": T("Within reach", "只说范围之内"), "text": dict(outlook["within"])},
        ],
    }  # fmt: skip
    return {
        "summary": T("In this order; this page starts no job.", "按此顺序；本页不启动作业。"),
        "blocks": [{"type": "decisions", "items": items}, strip],
    }


def milestones(own: Own) -> Block:
    """The execution's course from its receipts."""
    moments = [
        (at.astimezone(datetime.UTC).date().isoformat(), _COURSE[kind])
        for kind, at, _body in recorded_days(own.execution)
    ]
    items = [
        {"date": day, "title": dict(title)} for day, title in dict.fromkeys((d, tuple(t.items())) for d, t in moments)
    ]
    return {
        "summary": T("From receipts; days in UTC.", "取自回执；日期为 UTC。"),
        "blocks": [{"type": "timeline", "items": items}],
    }
