"""Claims of what trials showed: the signal, its geometry, what changed, what it cost. None of them is an effect.

Each says what was counted and no more; that a coefficient moved parameters, or that taking an edit back changed a
verdict, says nothing of held-out behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from evidence.models import Figure
from evidence.notes.own_claims import write_claim
from evidence.notes.own_figures import Own
from evidence.notes.own_trials import arms_tried, has_pilot, has_trials, reads_d
from evidence.notes.own_words import Text, text

PILOT_LAST = "pilot.cost"  # the claim of a pilot that is written after all others
_SIGNAL = text(
    "Conditions on the other finished files: no action value, no Shapley share, no natural continuation. Says "
    "nothing of an effect.",
    "以其余已完成的文件为条件：不是动作价值，不是 Shapley 份额，也不是自然续写。与有没有效果无关。",
)
_SCOPE = text("These generated tasks under this parent.", "限这些生成的任务与这个父检查点。")
_MISSING = text("An independent review; other tasks, parents and hosts.", "独立评审；其他任务、父检查点与主机。")
_MISSING_CHANGE = text(
    "An independent review; a measured effect, which this is not.", "独立评审；测得的效果，而这不是。"
)
_FACTS = text("A count of what was done. Says nothing of an effect.", "只是对所做之事的计数。与有没有效果无关。")
_SECONDS = text("Seconds on this machine; other machines differ.", "本机上的秒数；其他机器会不同。")
_MASS = text(
    "Squared mass, gradients and clipping of the arms are not equal, and their updates differ.",
    "各臂的平方质量、梯度与裁剪并不相等，更新也不同。",
)


def claim_trials(own: Own) -> list[str]:
    """Keys of the claims, in the order of the page; those of arms once the execution is closed."""
    if not has_trials(own):
        return []
    keys = []
    if has_pilot(own):
        keys += [_signal(own), *_failed(own), *_cap(own), *_repeated(own)]
    if own.is_closed:
        keys += [*_masses(own), *_changed(own)]
    if has_pilot(own):
        keys.append(_cost(own))  # PILOT_LAST
    return keys


def _said(own: Own, name: str, said: Text, kind: str, evidence: Sequence[tuple[str, str, Text]]) -> str:
    """Write a claim with its scope and with what is still missing."""
    missing = _MISSING_CHANGE if name in ("masses", "changed") else _MISSING
    return write_claim(
        own, name, said, kind, evidence, missing_en=missing["en"], missing_zh=missing["zh"], scope_en=_SCOPE["en"],
        scope_zh=_SCOPE["zh"],
    )  # fmt: skip


def measured(own: Own, name: str) -> Fraction:
    """A count that was bound; 0 where it has no value, which the caller says in words."""
    return own.value(name) or Fraction(0)


def _token(own: Own, name: str) -> str:
    return f"[[{own.key(name)}]]"


def _signal(own: Own) -> str:
    some, of, planned = (_token(own, f"pilot.{name}") for name in ("nonzero", "usable", "planned"))
    said = text(
        f"In the pilot {of} of {planned} planned queries have a D; taking the retained edit back changed U in {some} "
        "of them.",
        f"试点中，{planned} 个计划的查询里 {of} 个有 D；撤回所保留的编辑，在其中 {some} 个里改变了 U。",
    )
    kind = "mechanism" if measured(own, "pilot.nonzero") else "negative"
    evidence = [(own.key("pilot.nonzero"), "supports", _SIGNAL), (own.key("pilot.usable"), "bounds", _SIGNAL)]
    return _said(own, "pilot.signal", said, kind, evidence)


def _failed(own: Own) -> list[str]:
    """Where failed originals were queried: positive D among them is a reservation of its own."""
    if not measured(own, "pilot.failed.usable"):
        return []
    names = ("failed.usable", "failed.positive", "positive.tests", "positive.regression")
    of, up, tests, other = (_token(own, f"pilot.{name}") for name in names)
    said = text(
        f"Among {of} queried originals that failed, D is positive in {up}: in {tests} by fail-to-pass tests, in "
        f"{other} by the regression indicator alone. There an edit of a trajectory that failed is given credit.",
        f"被查询的 {of} 个失败原件中，{up} 个的 D 为正：{tests} 个来自应由失败转通过的测试，{other} 个仅来自回归指示。"
        "此处，失败轨迹中的编辑获得了正的信用。",
    )
    return [_said(own, "pilot.failed", said, "mechanism", [(own.key("pilot.failed.positive"), "supports", _SIGNAL)])]


def _cap(own: Own) -> list[str]:
    """Only where a difference is there can the cap act."""
    if own.bound.get("pilot.capped") != Figure.BOUND or not measured(own, "pilot.nonzero"):
        return []
    capped, some, s = (_token(own, f"pilot.{name}") for name in ("capped", "nonzero", "shrinkage"))
    mostly = 2 * measured(own, "pilot.capped") > measured(own, "pilot.nonzero")
    tail = (
        text("so that sign and support are kept and size mostly is not", "因此保留的是符号与位置，大小多半没有保留")
        if mostly
        else text("so that size is kept in the others", "其余的大小得以保留")
    )
    said = text(
        f"The cap acts on {capped} of {some} such differences (median s {s}), {tail['en']}.",
        f"上限在 {some} 个这样的差异中对 {capped} 个起作用（s 的中位数 {s}），{tail['zh']}。",
    )
    return [_said(own, "pilot.cap", said, "mechanism", [(own.key("pilot.capped"), "supports", _SIGNAL)])]


def _repeated(own: Own) -> list[str]:
    if not measured(own, "pilot.replays") or not measured(own, "pilot.repeats"):
        return []
    names = ("replays.agree", "replays", "repeats.agree", "repeats")
    same, of, again, tried = (_token(own, f"pilot.{name}") for name in names)
    said = text(
        f"Executed again, {same} of {of} originals and {again} of {tried} trees without the edit gave the same label "
        "on every test.",
        f"再次执行时，{of} 个原件中 {same} 个、{tried} 个去掉编辑的树中 {again} 个，每项测试的标签都相同。",
    )
    agree = measured(own, "pilot.replays.agree") == measured(own, "pilot.replays")
    agree = agree and measured(own, "pilot.repeats.agree") == measured(own, "pilot.repeats")
    evidence = [(own.key(f"pilot.{name}.agree"), "supports", _FACTS) for name in ("replays", "repeats")]
    return [_said(own, "pilot.repeatability", said, "mechanism" if agree else "negative", evidence)]


def _masses(own: Own) -> list[str]:
    """Arms that read D: signed and absolute mass are those that the definition shares between them."""
    arms = [arm for arm in arms_tried(own) if reads_d(own, arm) and measured(own, f"arm.{arm}.applied")]
    arms = [arm for arm in arms if own.bound.get(f"arm.{arm}.masses") == Figure.BOUND]
    if not arms:
        return []
    parts = [(arm, _token(own, f"arm.{arm}.masses"), _token(own, f"arm.{arm}.applied")) for arm in arms]
    en = ", ".join(f"{n} of {of} terms of arm {{{{name:{arm}}}}}" for arm, n, of in parts)
    zh = "、".join(f"{{{{name:{arm}}}}} 臂 {of} 项中的 {n} 项" for arm, n, of in parts)
    said = text(
        f"Signed and absolute mass are those that broadcast and localised credit share by definition, in {en}.",
        f"{zh}，其带号质量与绝对质量符合广播与局部信用按定义共有的值。",
    )
    evidence = [(own.key(f"arm.{arm}.masses"), "supports", _MASS) for arm in arms]
    return [_said(own, "masses", said, "mechanism", evidence)]


def _changed(own: Own) -> list[str]:
    arms = [item["key"] for item in own.plan["arms"] if measured(own, f"arm.{item['key']}.updates")]
    if not arms:
        return []
    parts = [(arm, _token(own, f"arm.{arm}.changed"), _token(own, f"arm.{arm}.updates")) for arm in arms]
    en = ", ".join(f"{n} of {of} updates of arm {{{{name:{arm}}}}}" for arm, n, of in parts)
    zh = "、".join(f"{{{{name:{arm}}}}} 臂 {of} 次更新中的 {n} 次" for arm, n, of in parts)
    said = text(f"Parameters changed in {en}.", f"参数改变于：{zh}。")
    kind = "description" if any(measured(own, f"arm.{arm}.changed") for arm in arms) else "negative"
    evidence = [(own.key(f"arm.{arm}.changed"), "supports", _FACTS) for arm in arms]
    return [_said(own, "changed", said, kind, evidence)]


def _cost(own: Own) -> str:
    names = ("executed", "complete", "service.mean", "service.p95", "unisolated")
    made, whole, mean, tail, bare = (_token(own, f"pilot.{name}") for name in names)
    said = text(
        f"The pilot executed {made} trials, {whole} with a complete report, in {mean} s of service on average ({tail} "
        f"s at the high percentile): set-up, verification and clean-up, without waiting. {bare} of them ran without "
        "isolation.",
        f"试点执行了 {made} 次试验，其中 {whole} 次报告完整，平均服务时间 {mean} 秒（高分位 {tail} 秒）："
        f"含准备、验证与清理，不含排队。其中 {bare} 次未隔离执行。",
    )
    evidence = [(own.key("pilot.service.mean"), "supports", _SECONDS), (own.key("pilot.executed"), "bounds", _FACTS)]
    return _said(own, PILOT_LAST, said, "cost", evidence)
