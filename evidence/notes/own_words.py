"""Words of generated pages, in both languages. No number stands in them: numbers are bound where they are shown."""

from __future__ import annotations

from collections.abc import Mapping

Text = Mapping[str, str]


def text(en: str, zh: str) -> dict[str, str]:
    """A bilingual text."""
    return {"en": en, "zh": zh}


def joined(*texts: Text) -> dict[str, str]:
    """Texts that stand behind each other."""
    return text("".join(item["en"] for item in texts), "".join(item["zh"] for item in texts))


CONDITIONS: Mapping[str, Text] = {
    "standard": text("without injected failures", "无注入失败"),
    "stress": text("under injected failures", "注入失败下"),
}
HELD_OUT = text("on held-out tasks", "留出任务上")
METRICS: Mapping[str, Text] = {
    "reward": text("reward", "奖励"),
    "success": text("success", "成功"),
    "recovery_all": text("recovery over all tasks", "全部任务中的恢复"),
    "recovery": text("recovery", "恢复"),
    "fatal": text("Fatal trajectories", "Fatal 轨迹"),
    "finish": text("finish", "完成"),
}
OUTCOMES: Mapping[str, Text] = {
    "finish": text("finish", "完成"),
    "success": text("success", "成功"),
    "policy_error": text("parser or policy failure", "解析或策略失败"),
    "premature": text("premature finish", "过早结束"),
    "repeat": text("any repeated call", "有重复调用"),
    "recovered": text("recovery, all items", "恢复，全部条目"),
    "recovered_exposed": text("recovery, items that met a failure", "恢复，遇到失败的条目"),
    "fatal": text("Fatal", "Fatal"),
    "continued": text("went on after a Fatal", "Fatal 之后继续"),
    "mean.reward": text("mean reward", "平均奖励"),
}
STANDARD_OUTCOMES = ("finish", "success", "policy_error", "premature", "repeat", "mean.reward")
ITEMS = text("evaluation items of the cell", "该单元的评测条目")
CELL_OF: Mapping[str, Text] = {
    "recovered_exposed": text("items of the cell that met a failure", "该单元中遇到失败的条目"),
    "continued": text("Fatal items of the cell", "该单元中的 Fatal 条目"),
}
PAIRED = text("paired held-out tasks", "配对的留出任务")
PARENT = text("parent", "父检查点")
NO_CASE = text("no case to count: a rate without exposure is no value", "没有可计的情形：没有暴露就没有比率")
NOT_MEASURED = text("the closed execution did not measure it", "已封存的执行没有测量它")
CLOSING = text("the closing of this execution", "本执行的封存")
EVALUATION = text("the closed evaluation on held-out tasks", "留出任务上已封存的评估")
OPEN = text(
    "Generated from the receipts of an ended pilot; this record does not say whether the execution went on",
    "由已结束的试点的回执生成；此记录不说明执行是否继续",
)
NO_EFFECT_YET = text(
    "No effect is measured: every effect cell waits for the closed evaluation.",
    "尚未测量任何效果：效果单元都待评估封存。",
)
LET_IT_CLOSE = text(
    "Close the execution: only its evaluation fills the effect cells.", "封存该执行：只有其评估能填入效果单元。"
)
COUNTS = text(
    "Counts of the closed execution with their denominators, and every registered endpoint.",
    "已封存执行的计数及其分母，以及每个登记的终点。",
)
COUNTS_OPEN = text(
    "Counts of the ended pilot with their denominators; what closing gives is pending.",
    "已结束的试点的计数及其分母；封存所给出的尚待填入。",
)
AWAITED = text("pending until the evaluation is closed", "待评估封存后填入")

QUANTITIES: Mapping[str, Text] = {
    "difference": text("difference", "差"),
    "low": text("lower end of the interval", "区间下端"),
    "high": text("upper end of the interval", "区间上端"),
    "tasks": text("tasks compared", "所比较的任务"),
    "seeds": text("training seeds", "训练种子"),
    "seed_sd": text("spread over training seeds", "训练种子间的离散"),
}

# What a claim adds to its numbers, by the verdict word that the plan's rules gave.
TAILS: Mapping[str, Text] = {
    "improvement": text(
        "; an improvement in the registered direction on this frozen sample", "；在此冻结样本上，按登记方向为改善"
    ),
    "equivalence": text(
        "; equivalent within the registered region on this frozen sample", "；在登记区间内等效，限此冻结样本"
    ),
    "non_inferiority": text(
        "; not inferior beyond the registered margin on this frozen sample", "；按登记界值非劣，限此冻结样本"
    ),
    "not_distinguished": text(
        "; not distinguished from seed noise, which asserts no equivalence", "；未能与种子噪声区分，这不表示等效"
    ),
    "observed_on_this_frozen_sample": text("; observed on this frozen sample", "；限此冻结样本上的观察"),
    "pending": text("; not all items are in, so that no word is read off", "；条目未齐，不作判读"),
}
UNMEASURED = text("since the closed execution did not measure it", "已封存的执行没有测量它")
WAITING = text("until the closed evaluation on held-out tasks fills it", "待留出任务上已封存的评估填入")
NO_WIDTH = text(
    "; every task has the same value, so that an interval without width is no evidence of precision",
    "；每个任务的值都相同，区间没有宽度并不表示精确",
)
POWER = text(
    "; with its seeds the plan can tell arms apart from a difference of {} upwards only",
    "；以其种子数，方案只能分辨 {} 及以上的臂间之差",
)
POWERLESS = text(
    "; its seeds allow no statement on a difference between arms, whatever its size",
    "；其种子数不足以判断臂间之差，无论大小",
)
AGAINST = text("; against the registered direction", "；与登记方向相反")
VERDICTS: Mapping[str, Text] = {
    "improvement": text("improvement, on this sample", "改善，限此样本"),
    "equivalence": text("equivalence, on this sample", "等效，限此样本"),
    "non_inferiority": text("non-inferiority, on this sample", "非劣，限此样本"),
    "not_distinguished": text("not distinguished from seed noise", "未能与种子噪声区分"),
    "observed_on_this_frozen_sample": text("observed on this sample, and no more", "限此样本的观察"),
    "pending": text("not measured", "未测量"),
}
KINDS = {
    "improvement": "improvement",
    "equivalence": "equivalence",
    "non_inferiority": "non_inferiority",
    "not_distinguished": "negative",
}
REACH = text(
    "A paired difference on this frozen sample; no statement beyond these tasks.",
    "此冻结样本上的配对差；不涉及这些任务之外。",
)
MISSING = text("An independent review, further seeds and other tasks.", "独立评审、更多种子与其他任务。")
