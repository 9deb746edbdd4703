"""What a receipt means to a reader: its group, and a sentence in both languages whose numbers are places of its body.

``[[/steps]]`` is the value at that place of the body, shown with a link to the receipt; ``[[#]]`` counts receipts of
one kind in a stream on that day. A kind without a phrase of its own is told by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

RAN, FINISHED, FAILED, CORRECTED, DECIDED, ADDED, OPENED, CLOSED, PENDING = (
    "ran", "finished", "failed", "corrected", "decided", "added", "opened", "closed", "pending",
)  # fmt: skip
GROUPS = (RAN, FINISHED, FAILED, CORRECTED, DECIDED, ADDED, OPENED, CLOSED, PENDING)
Body = Mapping[str, Any]


@dataclass(frozen=True)
class Phrase:
    """``each``: a line for every receipt; else one line for a stream's receipts of the kind, with their count."""

    group: str
    en: str
    zh: str
    each: bool = True


def _many(group: str, en: str, zh: str) -> Phrase:
    return Phrase(group, en, zh, each=False)


PHRASES: Mapping[str, Phrase] = {
    "study.created": Phrase(DECIDED, "The study was founded.", "研究已建立。"),
    "study.visibility": Phrase(
        DECIDED,
        "Visibility changed from [[/from]] to [[/to]].",
        "可见范围由 [[/from]] 改为 [[/to]]。",
    ),
    "member.added": Phrase(DECIDED, "A member was added.", "新增一位成员。"),
    "member.removed": Phrase(DECIDED, "A member was removed.", "移除一位成员。"),
    "plan.frozen": Phrase(DECIDED, "A plan was frozen.", "方案已冻结。"),
    "plan.superseded": Phrase(CORRECTED, "A plan was superseded: [[/reason]]", "方案被取代：[[/reason]]"),
    "execution.started": Phrase(RAN, "An execution began.", "执行开始。"),
    "execution.closed": Phrase(
        FINISHED,
        "An execution closed: [[/counts/items]] items evaluated, [[/counts/jobs]] jobs, [[/counts/captures]] captures.",
        "执行完结：[[/counts/items]] 个评测项、[[/counts/jobs]] 个作业、[[/counts/captures]] 份采集。",
    ),
    "execution.interrupted": Phrase(FAILED, "An execution was interrupted: [[/reason]]", "执行中断：[[/reason]]"),
    "execution.recovery_plan": Phrase(DECIDED, "A recovery plan was recorded.", "已登记恢复方案。"),
    "execution.paused": Phrase(DECIDED, "An execution was paused.", "执行已暂停。"),
    "execution.resumed": Phrase(DECIDED, "An execution was resumed.", "执行已继续。"),
    "execution.cancelled": Phrase(DECIDED, "An execution was cancelled.", "执行已取消。"),
    "gate.met": Phrase(DECIDED, "A gate was met.", "门槛已满足。"),
    "gate.refused": Phrase(
        DECIDED,
        "A gate was not met; what it guards does not run.",
        "门槛未满足，其后的内容不运行。",
    ),
    "preflight.passed": Phrase(FINISHED, "The preflight passed.", "预检通过。"),
    "preflight.stopped": Phrase(
        FAILED,
        "The preflight stopped the execution: [[/reason]]",
        "预检停止了执行：[[/reason]]",
    ),
    "run.stopped": Phrase(FAILED, "A run was stopped: [[/reason]]", "运行被停止：[[/reason]]"),
    "run.partial_invalid": Phrase(FAILED, "A run is partly invalid: [[/reason]]", "运行部分无效：[[/reason]]"),
    "run.paused": Phrase(DECIDED, "A run was paused.", "运行已暂停。"),
    "run.resumed": Phrase(DECIDED, "A run was resumed.", "运行已继续。"),
    "run.cancelled": Phrase(DECIDED, "A run was cancelled: [[/reason]]", "运行已取消：[[/reason]]"),
    "job.failed": Phrase(FAILED, "A job failed: [[/reason]]", "作业失败：[[/reason]]"),
    "job.errored": Phrase(FAILED, "A job ended in an error of ours: [[/reason]]", "作业因系统错误终止：[[/reason]]"),
    "attempt.lost": _many(FAILED, "Attempts lost: [[#]].", "丢失的尝试：[[#]]。"),
    "shard.collected": _many(RAN, "Shards collected: [[#]].", "已采集分片：[[#]]。"),
    "shard.lost": _many(FAILED, "Shards lost: [[#]].", "丢失分片：[[#]]。"),
    "update.applied": _many(RAN, "Updates applied: [[#]].", "已应用更新：[[#]]。"),
    "update.skipped": _many(
        RAN,
        "Updates skipped, the last because of [[/skipped]]: [[#]].",
        "跳过更新（最近原因 [[/skipped]]）：[[#]]。",
    ),
    "probe.recorded": _many(RAN, "Probes recorded: [[#]].", "已记录探针：[[#]]。"),
    "probe.unavailable": Phrase(FAILED, "A probe could not be made: [[/reason]]", "探针无法完成：[[/reason]]"),
    "trials.recorded": _many(RAN, "Groups tried without one edit: [[#]].", "已完成去除单次编辑的试验组：[[#]]。"),
    "trials.unavailable": Phrase(FAILED, "A group could not be tried: [[/reason]]", "一组试验无法完成：[[/reason]]"),
    "retention.applied": Phrase(
        DECIDED,
        "Retention removed [[/removed]] blobs.",
        "保留策略移除了 [[/removed]] 个数据块。",
    ),
    "logged_run.created": Phrase(RAN, "A run was logged from elsewhere: [[/name]].", "登记外部运行：[[/name]]。"),
    "logged_run.moved": Phrase(
        RAN,
        "A logged run went from [[/from]] to [[/to]].",
        "外部运行由 [[/from]] 变为 [[/to]]。",
    ),
    "logged_run.renamed": Phrase(CORRECTED, "A logged run was renamed.", "外部运行已改名。"),
    "logged_run.linked": Phrase(DECIDED, "A logged run was linked to a plan.", "外部运行已关联方案。"),
    "import.begun": Phrase(RAN, "An import began.", "导入开始。"),
    "import.ended": Phrase(FINISHED, "An import ended: [[/state]].", "导入结束：[[/state]]。"),
    "metrics.sealed": _many(RAN, "Chunks of logged metrics sealed: [[#]].", "封存指标数据块：[[#]]。"),
    "evidence.excerpt": _many(ADDED, "Excerpts added: [[#]], the last [[/key]].", "新增摘录：[[#]]，最近 [[/key]]。"),
    "evidence.link": _many(ADDED, "Links between claims and evidence added: [[#]].", "新增主张与证据的关联：[[#]]。"),
    "source.described": _many(CORRECTED, "Descriptions of sources recorded: [[#]].", "登记来源说明：[[#]]。"),
    "evidence.link_withdrawal": Phrase(CORRECTED, "A link was withdrawn: [[/reason]]", "撤回一条关联：[[/reason]]"),
    "evidence.stale_mark": _many(
        OPENED,
        "Marked as stale: [[#]], the last because [[/reason]]",
        "标记为过期：[[#]]，最近原因：[[/reason]]",
    ),
    "evidence.stale_resolution": _many(CLOSED, "Stale marks settled: [[#]].", "已处理过期标记：[[#]]。"),
    "evidence.notes_version": Phrase(
        DECIDED,
        "Notes saved as version [[/number]].",
        "研究手记已保存为第 [[/number]] 版。",
    ),
    "evidence.acceptance": Phrase(
        DECIDED,
        "An acceptance contract: [[/status]], assurance [[/assurance]].",
        "验收约定：[[/status]]，保证等级 [[/assurance]]。",
    ),
    "evidence.answer": Phrase(DECIDED, "A review was answered: [[/text]]", "回复评审：[[/text]]"),
}  # fmt: skip


def _source_version(body: Body) -> Phrase:
    if body["number"] == 1:
        return _many(ADDED, "Sources added: [[#]].", "新增来源：[[#]]。")
    return Phrase(
        CORRECTED, "A source has version [[/number]]: [[/reason]]", "来源更新为第 [[/number]] 版：[[/reason]]"
    )


def _source_check(body: Body) -> Phrase:
    group = CLOSED if body["state"] == "verified" else OPENED
    return Phrase(group, "A source was checked: [[/state]].", "来源核对结果：[[/state]]。")


def _figure_version(body: Body) -> Phrase:
    if body["number"] == 1:
        return _many(ADDED, "Figures bound: [[#]].", "新增数值绑定：[[#]]。")
    en, zh = ("/title_en" if body["title_en"] else "/title_zh"), ("/title_zh" if body["title_zh"] else "/title_en")
    if body["value"] is None:
        return Phrase(
            CORRECTED,
            f"Figure [[{en}]] has version [[/number]], without a value: [[/reason]]",
            f"数值“[[{zh}]]”更新为第 [[/number]] 版，暂无取值：[[/reason]]",
        )
    return Phrase(
        CORRECTED,
        f"Figure [[{en}]] has version [[/number]], now [[/value]]: [[/reason]]",
        f"数值“[[{zh}]]”更新为第 [[/number]] 版，现为 [[/value]]：[[/reason]]",
    )


def _endpoint(body: Body) -> Phrase:
    """With the arms that were compared: an endpoint of several arms leaves a receipt for each."""
    pair = body.get("compare") == "pair"
    en = "arm [[/arms/last]] minus [[/arms/first]]" if pair else "arm [[/arms/first]] minus its parent"
    zh = "[[/arms/last]] 臂减 [[/arms/first]] 臂" if pair else "[[/arms/first]] 臂减其父检查点"
    return Phrase(
        FINISHED,
        f"Endpoint [[/id]], {en}, is [[/state]]: difference [[/difference]], interval [[/low]] to [[/high]].",
        f"终点 [[/id]]（{zh}）的状态为 [[/state]]：差值 [[/difference]]，区间 [[/low]] 至 [[/high]]。",
    )


def _claim_version(body: Body) -> Phrase:
    if body["held_to"] == "withdrawn":
        return Phrase(CORRECTED, "A claim was withdrawn: [[/reason]]", "主张已撤回：[[/reason]]")
    if body["held_to"]:
        return Phrase(
            DECIDED,
            "A claim was lowered to [[/held_to]]: [[/reason]]",
            "主张降为 [[/held_to]]：[[/reason]]",
        )
    if body["number"] == 1:
        return _many(ADDED, "Claims written: [[#]].", "新增主张：[[#]]。")
    return Phrase(
        CORRECTED,
        "A claim has version [[/number]]: [[/reason]]",
        "主张更新为第 [[/number]] 版：[[/reason]]",
    )


def _review(body: Body) -> Phrase:
    group = DECIDED if body["verdict"] == "accept" else OPENED
    return Phrase(
        group,
        "A review ([[/independence]]) says [[/verdict]]: [[/reason]]",
        "评审（[[/independence]]）意见 [[/verdict]]：[[/reason]]",
    )


BY_BODY: Mapping[str, Callable[[Body], Phrase]] = {
    "endpoint.measured": _endpoint,
    "evidence.source_version": _source_version,
    "evidence.source_check": _source_check,
    "evidence.figure_version": _figure_version,
    "evidence.claim_version": _claim_version,
    "evidence.review": _review,
}
UNTOLD = ("evidence.journal_day", "evidence.journal_note")  # the journal does not tell of itself


def phrase_of(kind: str, body: Body) -> Phrase | None:
    """How a receipt is told; None for one that the journal leaves out."""
    if kind in UNTOLD:
        return None
    if kind in BY_BODY:
        return BY_BODY[kind](body)
    return PHRASES.get(kind) or Phrase(RAN, f"Recorded: {kind}.", f"已记录：{kind}。")
