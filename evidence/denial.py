"""Denials: whether a sentence denies the word of a claim, in English and Chinese.

A denial stands directly before the word ("does not improve", "no improvement", 不优于) or says of what follows that it
is not known ("it is not shown that it improves", 尚未证明它优于基线). A negation of something else in the sentence
("Without a mask F improves") denies nothing, and one that is itself denied ("not without improvement") asserts.
"""

from __future__ import annotations

import re

LONGEST = 240  # code points before a word in which its denial may stand
_CLAUSE_END = re.compile(
    r"[.;:!?,，。；：！？、\n]|\b(?:and|but|yet|while|whereas|so|which|although|though|because|since|unless|until|when|"
    r"where|if|as)\b|但|而且|并且|然而|因此|所以|却|只要|除非",
    re.I,
)
_NOT = (
    r"(?:\b(?:not|never|cannot|nor|neither)\b|\b(?:ca|is|are|was|were|does|do|did|wo|would|could|has|have|had|should)"
    r"n['’]t\b)"
)
_NONE = r"\b(?:no|without|lacks?|lacking|nothing|none)\b"
_LINK = r"(?:a|an|any|the|be|been|being|to be|have|has|had|of|yet|such|is|are|it|they|does|do|did|clear|further|\w+ly)"
_VERB = (
    r"(?:shows?|shown|says?|said|means?|meant|claim(?:s|ed)?|establish(?:es|ed)?|demonstrat(?:es?|ed)|prove[sdn]?|"
    r"suggest(?:s|ed)?|impl(?:y|ies|ied)|indicat(?:es?|ed)|tells?|known?|knows|finds?|found|sees?|seen|observed?|"
    r"measured?|register(?:s|ed)?|detect(?:s|ed)?|support(?:s|ed)?|assert(?:s|ed)?|expect(?:s|ed)?|clear)"
)
_EVIDENCE = r"(?:evidence|proof|sign|signs|indication|claim|basis|support|reason|statement)"
_DIRECT = re.compile(rf"(?:{_NOT}|{_NONE})\s+(?:{_LINK}\s+){{0,3}}\Z", re.I)
_OBJECT = re.compile(
    rf"(?:{_NOT}\s+(?:\w+ly\s+|yet\s+|been\s+|be\s+|itself\s+){{0,2}}{_VERB}|\bnothing\s+(?:here\s+)?{_VERB})\s+"
    rf"(?:to\s+)?(?:{_LINK}\s+){{0,3}}\Z"
    rf"|(?:{_NOT}|{_NONE})\s+(?:{_LINK}\s+){{0,2}}{_EVIDENCE}\s+(?:of|for)\s+(?:{_LINK}\s+){{0,2}}\Z", re.I,
)  # fmt: skip
_THAT = r"(?:that|whether|how)"
_REPORT = re.compile(
    rf"(?:{_NOT}\s+(?:\w+ly\s+|yet\s+|been\s+|be\s+|itself\s+){{0,2}}{_VERB}\s+(?:us\s+)?{_THAT}"
    rf"|\bnothing\s+(?:here\s+)?{_VERB}\s+{_THAT}|{_NOT}\s+the\s+case\s+that"
    rf"|(?:{_NOT}|{_NONE})\s+(?:{_LINK}\s+){{0,2}}{_EVIDENCE}\s+{_THAT}"
    rf"|\b(?:unknown|unclear|undecided|unproven)\s+{_THAT})\b(?:(?!\bthat\b).)*\Z", re.I | re.S,
)  # fmt: skip
# Denials that assert: "not only", "cannot be denied", and a denial of a denial.
_ASSERTS = re.compile(
    r"\b(?:(?:can)?not (?:only|just|merely|solely|be (?:denied|doubted|disputed)|fail(?:ing)? to)|no doubt|"
    r"without (?:a |any )?(?:doubt|question)|never fail(?:s|ed)? to|no (?:lack|shortage|absence) of)\b"
    rf"|(?:{_NOT}|{_NONE})\s+(?:{_LINK}\s+){{0,2}}(?:{_NOT}|{_NONE}|untrue|wrong|false)"
    r"|不可否认|毫无疑问|无疑|不得不|不能不|不会不|无不|并非(?:没有|不|无)|不是(?:没有|不)|没有不", re.I,
)  # fmt: skip
_NOT_ZH = (
    "(?:不(?!仅|但|只|光|同|断|少|久|过|错|禁|愧|得不|可否认)|没有|尚未|并未|未(?!来)|无法|并非|绝非|而非|而不是|"
    "无从|缺乏|并无|无|毋|勿)"
)
_LINK_ZH = (
    "(?:能|会|是|再|曾|有|得到|被|明显|显著|任何|一定|必然|足以|可以|可|出现|看到|观察到|观测到|发现|见|获得|带来|实现|"
    "产生|构成|代表|表示|说明|等于|意味着|声称|宣称|证明|证实|表明|显示|保证|登记|测得|属于|算|了|的|为|其|更|统计上|统计)"
)
_VERB_ZH = (
    "(?:证明|证实|表明|说明|表示|意味着|声称|显示|断言|认为|宣称|看出|得出|推出|确定|知道|保证|"
    "证据(?:表明|说明|显示|证明)?)"
)
_DIRECT_ZH = re.compile(rf"{_NOT_ZH}{_LINK_ZH}{{0,4}}\Z")
_REPORT_ZH = re.compile(
    rf"{_NOT_ZH}(?:能|足以|可以|可|会|有|任何|充分的?|足够的?|就|直接|由此|据此){{0,3}}{_VERB_ZH}.{{0,16}}\Z", re.S
)


def denied(text: str, start: int) -> bool:
    """Whether the word at ``start`` is denied in its clause."""
    before = _ASSERTS.sub(lambda found: "~" * len(found[0]), text[max(0, start - LONGEST) : start])
    before = before[max((found.end() for found in _CLAUSE_END.finditer(before)), default=0) :]
    patterns = (_DIRECT, _OBJECT, _REPORT, _DIRECT_ZH, _REPORT_ZH)
    return any(pattern.search(before) for pattern in patterns)
