"""Words against kind: what a claim of each kind may say, in English and Chinese.

A word that asserts more than the claim's kind is refused by name: "improves" belongs to an improvement,
"no difference" to an equivalence, "not worse" to a non-inferiority, and each of those needs what its plan
registered (spec "evidence and notes", Claim). "No regression was observed" is open to every claim and is
worded so. Nothing proves, nothing is safe. A denied word ("does not show that it improves") asserts
nothing and is let through (``evidence.denial``). Figures, references and declared names are no words and are skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.translation import gettext as _

from evidence.binding.glyphs import fold, readings
from evidence.binding.tokens import CODE, FORMULA, NAME, TEXT, Trouble, parse_text
from evidence.denial import denied

IMPROVEMENT, EQUIVALENCE, NON_INFERIORITY, NO_REGRESSION = (
    "improvement", "equivalence", "non_inferiority", "no_regression",
)  # fmt: skip
RULED = (IMPROVEMENT, EQUIVALENCE, NON_INFERIORITY)  # kinds that stand or fall with a registered endpoint
REGRESSION, PROOF, SAFETY, GENERALITY = "regression", "proof", "safety", "generality"


@dataclass(frozen=True)
class Facts:
    """What is known of a claim's endpoint. ``registered``: kinds for which the plan registered what they take.

    ``holds``: kinds that the closed execution's interval supports, None while nothing is measured.
    """

    plan: bool = False
    endpoint: bool = False
    registered: frozenset[str] = frozenset()
    holds: frozenset[str] | None = None


class _Phrase(NamedTuple):
    family: str
    pattern: re.Pattern[str]


def _en(family: str, *patterns: str) -> _Phrase:
    return _Phrase(family, re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE))


def _zh(family: str, *patterns: str) -> _Phrase:
    return _Phrase(family, re.compile("|".join(patterns)))


# Longer families first where one phrase lies inside another ("no worse than" is no "worse").
PHRASES: tuple[_Phrase, ...] = (
    _en(
        IMPROVEMENT, r"improv(?:e[sd]?|ing|ements?)", r"better(?:s|ed)?", r"best", r"outperform(?:s|ed|ing|ance)?",
        r"superior(?:ity)?", r"surpass(?:es|ed|ing)?", r"beats?", r"enhanc(?:e[sd]?|ing|ements?)",
        r"boost(?:s|ed|ing)?", r"(?:statistically )?significan(?:t|tly|ce)", r"state[- ]of[- ]the[- ]art",
    ),
    _zh(
        IMPROVEMENT, "提升", "提高", "改善", "改进", "优于", "优越", "更优", "最优", "好于", "更好", "最好", "胜过",
        "超越", "强于", "更强", "显著",
    ),
    _en(
        EQUIVALENCE, r"equivalen(?:t|ts|tly|ce)", r"no (?:\w+ ){0,2}differences?", r"no different",
        r"indistinguishable", r"on (?:a )?par", r"comparable", r"equally (?:good|well|bad|effective|robust|safe)",
        r"just as (?:good|well)", r"(?:does|do|did) not differ", r"same (?:performance|quality|effect)", r"no effect",
    ),
    _zh(
        EQUIVALENCE, "等效", "等价", "(?:无|没有|并无|未见)(?:明显|显著|任何|统计)?(?:差异|差别|区别|影响|效应|效果)",
        "持平", "不相上下", "一样好", "同样好", "(?:与|和|跟)[^，。；、,;.]{1,24}相当(?![于大])", "不分高下",
    ),
    _en(
        NON_INFERIORITY, r"non[- ]?inferior(?:ity)?", r"not inferior", r"no(?:t)? worse(?: than)?",
        r"(?:at least|just) as (?:good|well|effective|robust) as",
    ),
    _zh(NON_INFERIORITY, "非劣", "不劣于", "不差于", "不逊于", "不亚于", "不弱于", "不低于"),
    _en(REGRESSION, r"no regressions?", r"(?:does|do|did) not regress", r"without (?:any )?regressions?"),
    _zh(REGRESSION, "(?:(?:没有|并未|未)(?:观察到|观测到|出现|见|发现)?|无)(?:出现|发生|任何)?(?:退步|退化|回归|劣化)"),
    _en(
        PROOF, r"prov(?:e[sdn]?|en|ing)", r"proofs?", r"guarantee(?:s|d|ing)?", r"conclusive(?:ly)?", r"undeniabl[ey]",
        r"establish(?:es|ed)? beyond doubt", r"certif(?:y|ies|ied)",
    ),
    _zh(PROOF, "证明", "证实", "保证", "确保", "毫无疑问", "必然", "铁证"),
    _en(SAFETY, r"saf(?:e|er|est|ely|ety)", r"harmless", r"risk[- ]free", r"fail[- ]safe"),
    _zh(SAFETY, "安全", "无害", "零风险", "无风险"),
    _en(
        GENERALITY, r"generali[sz](?:es|ed|ation)", r"general (?:ability|abilities|intelligence)", r"in production",
        r"production[- ]ready", r"real[- ]world", r"always", r"never fails?", r"universal(?:ly)?",
    ),
    _zh(GENERALITY, "泛化", "通用能力", "一般能力", "生产环境", "真实世界", "总是", "始终", "普遍适用"),
)  # fmt: skip

_OBSERVED = re.compile(r"\bobserved\b|\bseen\b|\bmeasured\b|观察到|观测到|测得|见到|发现", re.I)


def _masked(text: str) -> str:
    """The text with what is no word (figures, references, declared names) blanked out, code point for code point.

    A declared piece in which a word is a claim's verb is no name and stays.
    """
    return "".join(
        item.raw
        if item.kind == TEXT or (item.kind in (NAME, CODE, FORMULA) and _says(item.value))
        else " " * len(item.raw)
        for item in parse_text(text)
    )


def _says(value: str) -> bool:
    words = [fold(value)[0], *fold(value)[0].split()]
    return any(item.pattern.fullmatch(word) for item in PHRASES for word in words)


def _sentence(text: str, start: int, stop: int) -> str:
    ends = [match.end() for match in re.finditer(r"[.!?。！？\n]", text[:start])]
    rest = re.search(r"[.!?。！？\n]", text[stop:])
    return text[ends[-1] if ends else 0 : stop + rest.start() if rest else len(text)]


def _why(family: str, phrase: str) -> str:
    instead = _("or say what was counted; “no regression was observed” is allowed without a registered endpoint")
    ruled = {
        IMPROVEMENT: _("“%s” claims an improvement: make it a claim of kind improvement, which names a frozen plan's "
                       "endpoint with a direction and shows its effect figure,"),
        EQUIVALENCE: _("“%s” claims an equivalence: make it a claim of kind equivalence, whose endpoint registered an "
                       "equivalence interval that contains the whole confidence interval,"),
        NON_INFERIORITY: _("“%s” claims non-inferiority: make it a claim of kind non_inferiority, whose endpoint "
                           "registered a margin,"),
    }  # fmt: skip
    others = {
        REGRESSION: _("“%s” says more than was looked at: write “no regression was observed”"),
        PROOF: _("“%s” says more than an experiment can: write what was observed, and on what"),
        SAFETY: _("“%s” is nothing that these evaluations measure: name the outcome that was counted"),
        GENERALITY: _("“%s” reaches beyond the tasks that were evaluated: name them and the protocol"),
    }
    return f"{ruled[family] % phrase} {instead}" if family in ruled else others[family] % phrase


def _found(kind: str, read: str) -> list[tuple[str, int, int]]:
    """(family, start, stop) of the phrases of a folded text that a claim of this kind may not use, in order."""
    found: list[tuple[str, int, int]] = []
    reached = 0
    matches = [(item.family, match) for item in PHRASES for match in item.pattern.finditer(read)]
    for family, match in sorted(matches, key=lambda pair: (pair[1].start(), -pair[1].end())):
        start, stop = match.span()
        if start < reached:  # inside a phrase that was judged as a whole
            continue
        reached = stop
        if family == REGRESSION:
            allowed = bool(_OBSERVED.search(_sentence(read, start, stop)))
        else:
            allowed = family == kind or denied(read, start)
        if not allowed:
            found.append((family, start, stop))
    return found


def phrases(kind: str, text: str) -> list[Trouble]:
    """Every phrase of a text that a claim of this kind may not use, in order; read as it is seen, disguises undone."""
    spans: list[tuple[int, int, str, str]] = []
    for read, places in readings(_masked(text)):
        for family, start, stop in _found(kind, read):
            spans.append((places[start], places[stop - 1] + 1, family, read[start:stop]))
    troubles: list[Trouble] = []
    for first, last, family, word in sorted(spans):
        if not troubles or first >= troubles[-1].stop:
            troubles.append(Trouble("phrase", _why(family, word), first, last, text[first:last]))
    return troubles


def lacking(kind: str, facts: Facts) -> Trouble | None:
    """What a claim of a ruled kind lacks in its plan (code plan, endpoint or interval); None where it has all of it."""
    if kind not in RULED:
        return None
    allowed = _("“no regression was observed” is allowed without it, as a claim of kind no_regression")
    needs = {
        IMPROVEMENT: _("an endpoint with a direction (increase or decrease)"),
        EQUIVALENCE: _("an endpoint with an equivalence interval"),
        NON_INFERIORITY: _("an endpoint with a margin"),
    }[kind]
    if not facts.plan:
        why = _(
            "got no frozen plan, expected one with %(needs)s: freeze such a plan, run it and name it here; %(allowed)s"
        )
        return Trouble("plan", why % {"needs": needs, "allowed": allowed})
    if not facts.endpoint or kind not in facts.registered:
        why = _(
            "got a plan that registered no such thing, expected %(needs)s: freeze a new plan that does; %(allowed)s"
        )
        return Trouble("endpoint", why % {"needs": needs, "allowed": allowed})
    if facts.holds is not None and kind not in facts.holds:
        why = _(
            "got %(kind)s, expected what the closed execution's interval supports: say what was measured; %(allowed)s"
        )
        return Trouble("interval", why % {"kind": kind, "allowed": allowed})
    return None


def check(kind: str, text: str, language: str, facts: Facts | None = None) -> list[Trouble]:
    """Everything in ``text`` that a claim of ``kind`` may not say, and what its plan lacks.

    ``facts`` None: only the words are looked at. ``language`` (en, zh): in which words the remedy for a claim of kind
    no_regression is given; words of both languages are looked for, since texts mix them.
    """
    found = phrases(kind, text)
    missing = lacking(kind, facts) if facts is not None else None
    found += [missing] if missing is not None else []
    if kind == NO_REGRESSION and text.strip():
        masked = fold(_masked(text))[0]
        said = any(item.family == REGRESSION and item.pattern.search(masked) for item in PHRASES)
        if not (said and _OBSERVED.search(masked)):
            wanted = "未观察到退步" if language == "zh" else "no regression was observed"
            why = _("a claim of kind no_regression says what was seen and no more: write “%s”") % wanted
            found.append(Trouble("observed", why))
    return found
