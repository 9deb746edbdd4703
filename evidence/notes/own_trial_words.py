"""Words of what trials showed, in both languages. No number stands in them."""

from __future__ import annotations

from collections.abc import Mapping

from evidence.notes.own_words import Text, text

PILOT = text("pilot", "试点")
FROZEN = text("as the frozen plan says", "按冻结的方案")
NOTHING = text("there was nothing to count", "没有可计的情形")
NO_POWER = text("its seeds allow no statement on a difference between arms", "其种子数不足以判断臂间之差")
ALL_PLANNED = text("planned queries of the scope", "该范围计划的查询")

_USABLE = text("usable queries", "可用的查询")
_NONZERO = text("queries where taking the edit back changed U", "撤回编辑改变了 U 的查询")
_FAILED = text("queried originals that failed", "被查询的失败原件")
_CHOSEN = text("queries in which a block was chosen", "已选出编辑块的查询")
_UP = text("failed originals with a positive D", "D 为正的失败原件")
_GOOD = text("queried originals that succeeded", "被查询的成功原件")
_ASKED = text("queries to be executed", "应执行的查询")
_ASKED_FAILED = text("failed originals to be executed", "应执行的失败原件")
_REPLAYED = text("complete replays", "完整的重放")
_REPEATED = text("complete repeats", "完整的重复")
_EXECUTED = text("executed trials of the scope", "该范围执行的试验")
_TERMS = text("terms that updates applied", "更新所施加的项")
_UPDATES = text("updates of the arm", "该臂的更新")

LINES: Mapping[str, Text] = {
    "planned": text("Queries planned", "计划的查询"),
    "format_error": text("Excluded, format error", "排除：格式错误"),
    "no_eligible_block": text("Excluded, no eligible block", "排除：没有合格的编辑块"),
    "no_original_utility": text("Excluded, no original utility", "排除：原件没有效用"),
    "trial_incomplete": text("Excluded, trial incomplete", "排除：试验不完整"),
    "never": text("Never asked, its run ended before", "从未查询：运行先已结束"),
    "chosen_only": text("Block chosen, D never read", "选出编辑块，不读 D"),
    "usable": text("Usable: D is known", "可用：D 已知"),
    "zero": text("Taking the edit back left U as it was", "撤回编辑后 U 不变"),
    "positive": text("Positive D", "D 为正"),
    "negative": text("Negative D", "D 为负"),
    "nonzero": text("Taking the edit back changed U", "撤回编辑改变了 U"),
    "nonzero.rate": text("U changed, of the usable", "U 改变，占可用查询"),
    "nonzero.share": text("Share in which U changed", "U 改变的占比"),
    "usable.share": text("Share that is usable", "可用的占比"),
    "failed.known": text("Failed originals, queried or not", "失败的原件，无论是否被查询"),
    "failed.usable": text("Failed originals with a D", "有 D 的失败原件"),
    "failed.nonzero": text("U changed among failed originals", "失败原件中 U 改变"),
    "failed.positive": text("Positive D among failed originals", "失败原件中 D 为正"),
    "failed.negative": text("Negative D among failed originals", "失败原件中 D 为负"),
    "failed.rate": text("U changed among failed originals, of those with a D", "失败原件中 U 改变，占有 D 者"),
    "succeeded.usable": text("Successful originals with a D", "有 D 的成功原件"),
    "succeeded.nonzero": text("U changed among successful originals", "成功原件中 U 改变"),
    "succeeded.rate": text("U changed among successful originals, of those with a D", "成功原件中 U 改变，占有 D 者"),
    "positive.tests": text(
        "Positive D of failed originals by fail-to-pass tests", "失败原件的正 D：来自应由失败转通过的测试"
    ),
    "positive.regression": text(
        "Positive D of failed originals by the regression indicator alone", "失败原件的正 D：仅来自回归指示"
    ),
    "positive.tasks": text("Tasks of positive D among failed originals", "失败原件的正 D 所涉任务"),
    "chosen": text("Queries with a chosen block", "已选出编辑块的查询"),
    "ratio": text("Median m/L of the chosen turn", "所选轮次 m/L 的中位数"),
    "touched": text("Median share of final paths that the block touches", "编辑块触及最终路径之占比的中位数"),
    "empty": text("Nothing of the patch is left without the block", "去掉编辑块后补丁为空"),
    "empty.rate": text("Patch empty without the block", "去掉编辑块后补丁为空"),
    "elsewhere": text(
        "U changed by a block on paths absent from the final patch", "编辑块的路径不在最终补丁中而 U 改变"
    ),
    "elsewhere.rate": text(
        "Block on paths absent from the final patch, of those that changed U", "编辑块的路径不在最终补丁中，占改变 U 者"
    ),
    "capped": text("The cap acts", "上限起作用"),
    "capped.rate": text("The cap acts, of the differences that are there", "上限起作用，占存在的差异"),
    "shrinkage": text("Median of s", "s 的中位数"),
    "replays.agree": text("Replays of the original that agree in every label", "逐标签一致的原件重放"),
    "replays": text("Complete replays of the original", "完整的原件重放"),
    "replays.rate": text("Replays of the original agree", "原件重放一致"),
    "repeats.agree": text("Repeats without the block that agree in every label", "逐标签一致的去块重复"),
    "repeats": text("Complete repeats without the block", "完整的去块重复"),
    "repeats.rate": text("Repeats without the block agree", "去块重复一致"),
    "missing": text("No D although asked", "已查询而没有 D"),
    "asked": text("Queries to be executed", "应执行的查询"),
    "missing.rate": text("No D, of the queries to be executed", "没有 D，占应执行的查询"),
    "missing.failed": text("No D among failed originals", "失败原件中没有 D"),
    "asked.failed": text("Failed originals to be executed", "应执行的失败原件"),
    "missing.failed.rate": text("No D among failed originals, of those to be executed", "失败原件中没有 D，占应执行者"),
    "applied": text("Terms applied", "施加的项"),
    "moved": text("Terms that moved something", "有作用的项"),
    "masses": text(
        "Terms whose signed and absolute mass are those of the definition", "带号质量与绝对质量符合定义的项"
    ),
    "masses.rate": text("Masses agree with the definition", "质量符合定义"),
    "changed": text("Updates that changed parameters", "改变了参数的更新"),
    "updates": text("Updates", "更新"),
    "changed.rate": text("Updates that changed parameters, of all", "改变了参数的更新，占全部"),
    "edit_only": text("Groups of equal rewards that edit credit trained", "奖励相等而由编辑信用训练的组"),
    "tokens": text("Policy tokens sampled", "采样的策略词元"),
    "executed": text("Trials executed", "执行的试验"),
    "complete": text("Trials with a complete report", "报告完整的试验"),
    "unisolated": text("Trials executed without isolation", "未隔离执行的试验"),
    "service.mean": text("Mean service time", "平均服务时间"),
    "service.p95": text("High percentile of service time, nearest rank", "服务时间的高分位，最近秩"),
    "queue.mean": text("Mean wait in the queue", "平均排队时间"),
    "wall": text("Wall time of its runs, added up", "其各次运行的墙钟时间之和"),
}
BACKEND = text("Trials of a sandbox back end", "某沙箱后端的试验")
PER: Mapping[str, Text] = {
    **dict.fromkeys(("zero", "positive", "negative", "nonzero", "nonzero.rate", "nonzero.share"), _USABLE),
    **dict.fromkeys(("capped", "capped.rate", "shrinkage", "elsewhere", "elsewhere.rate"), _NONZERO),
    **dict.fromkeys(("failed.nonzero", "failed.positive", "failed.negative", "failed.rate"), _FAILED),
    **dict.fromkeys(("ratio", "touched", "empty", "empty.rate"), _CHOSEN),
    **dict.fromkeys(("executed", "complete", "unisolated", "service.mean", "service.p95", "queue.mean"), _EXECUTED),
    **dict.fromkeys(("positive.tests", "positive.regression", "positive.tasks"), _UP),
    **dict.fromkeys(("succeeded.nonzero", "succeeded.rate"), _GOOD),
    **dict.fromkeys(("replays.agree", "replays.rate"), _REPLAYED),
    **dict.fromkeys(("repeats.agree", "repeats.rate"), _REPEATED),
    **dict.fromkeys(("missing", "missing.rate"), _ASKED),
    **dict.fromkeys(("missing.failed", "missing.failed.rate"), _ASKED_FAILED),
    **dict.fromkeys(("applied", "moved", "masses", "masses.rate"), _TERMS),
    **dict.fromkeys(("changed", "updates", "changed.rate", "edit_only"), _UPDATES),
}
POWER: Mapping[str, Text] = {
    "detectable": text("Smallest difference that the plan's seeds can show", "方案的种子数能显示的最小差"),
    "detectable.seeds": text("Seeds of each arm behind it", "其依据的每臂种子数"),
    "detectable.sd": text("Assumed spread between seeds", "所假定的种子间离散"),
    "detectable.power": text("Power for which it is stated", "其所取的检验功效"),
}
SHORT: Mapping[str, Text] = {
    "tokens": text("Policy tokens", "策略词元"),
    "executed": text("Trials", "试验"),
    "complete": text("Complete", "完整"),
    "unisolated": text("Unisolated", "未隔离"),
    "service.mean": text("Service, mean, s", "服务时间，平均，秒"),
    "service.p95": text("Service, high percentile, s", "服务时间，高分位，秒"),
    "queue.mean": text("Waiting, mean, s", "排队，平均，秒"),
    "wall": text("Runs, wall time, s", "运行墙钟时间，秒"),
}
