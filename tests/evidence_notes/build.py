"""A study with held and claimed sources, figures of every state, claims, and a document that has every block."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from evidence.actions.claims import add_claim
from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.links import add_link
from evidence.actions.notes import save_notes
from evidence.actions.sources import add_source
from evidence.models import Claim, Figure, NotesVersion, Source
from evidence.notes import shapes
from evidence.notes.edits import TITLES
from runs.actions.actors import person_actor
from runs.actions.studies import create_study
from runs.models import Actor, Study, User

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
PASSWORD = "correct horse battery"
PILOT = "# Pilot\n\nOf 244 usable rows 92 were nonzero.\n"


def said(english: str, chinese: str = "") -> dict[str, str]:
    """A bilingual text."""
    return {"en": english, "zh": chinese}


EMPTY = said("")


@dataclass
class Desk:
    """The study, who writes, and a clock: every record has its own time."""

    study: Study
    by: Actor
    user: User
    clock: datetime = AT

    def tick(self) -> datetime:
        """The next minute."""
        self.clock += timedelta(minutes=1)
        return self.clock

    def replace(self, text: str, reason: str = "corrected") -> None:
        """Another version of the held source."""
        add_source(
            self.study, "pilot.md", text.encode(), origin=Source.UPLOAD, by=self.by, at=self.tick(), reason=reason
        )

    def save(self, document: dict[str, Any] | None = None, reason: str = "") -> NotesVersion:
        """Save a document, the whole one by default."""
        return save_notes(self.study, document or whole(), by=self.by, at=self.tick(), reason=reason)


def number(desk: Desk, key: str, value: str, excerpt: str = "counts", **given: Any) -> None:
    """A figure bound to a number of an excerpt."""
    binding = {"type": "excerpt", "excerpt": excerpt, "number": value}
    bind_figure(
        desk.study, key, binding, title_en=f"Figure {key}", title_zh="数字", kind="mechanism", by=desk.by,
        at=desk.tick(), **given,
    )  # fmt: skip


def make_desk() -> Desk:
    """A public study of the name pilot with the rows of ``fill``."""
    user = User.objects.create_user("ada", password=PASSWORD)
    study = create_study(
        "pilot", title={"en": "Pilot", "zh": "先导"}, summary={}, by=user, at=AT, visibility=Study.PUBLIC
    )
    desk = Desk(study, person_actor(user), user)
    fill(desk)
    return desk


def fill(desk: Desk) -> None:
    """244 usable and 92 nonzero from held bytes, 7 from bytes that are only claimed, a share, a pending effect."""
    study = desk.study
    held = add_source(
        study, "pilot.md", PILOT.encode(), origin=Source.UPLOAD, by=desk.by, at=desk.tick(), reference="R1",
        title_en="Pilot record", title_zh="先导记录",
    )  # fmt: skip
    claimed = add_source(
        study, "paper.pdf", None, origin=Source.IMPORTED, by=desk.by, at=desk.tick(), sha256="ab" * 32,
        reference="R2", title_en="Paper", title_zh="稿件",
    )  # fmt: skip
    quoted = {"exact": "Of 244 usable rows 92 were nonzero"}
    add_excerpt(study, held, "counts", "quote", quoted, by=desk.by, at=desk.tick())
    add_excerpt(study, claimed, "lost", "quote", {}, by=desk.by, at=desk.tick(), text="of which 7 were lost")
    number(desk, "pilot.usable", "244")
    number(desk, "pilot.nonzero", "92")
    number(desk, "pilot.lost", "7", "lost", origin="imported")
    operands = {"nonzero": "pilot.nonzero", "usable": "pilot.usable"}
    share = {"type": "derivation", "expression": "nonzero / usable", "figures": operands}
    bind_figure(study, "pilot.share", share, title_en="Share", kind="mechanism", by=desk.by, at=desk.tick(),
                style="percent", digits=1)  # fmt: skip
    fills = {"type": "pending", "fills": {"words_en": "the held-out evaluation", "words_zh": "留出评测"}}
    bind_figure(study, "effect", fills, title_en="Effect", title_zh="效果", kind="effect", by=desk.by, at=desk.tick())
    add_claim(study, "signal", text_en="[[pilot.nonzero]] queries carry a signal.",
              text_zh="[[pilot.nonzero]] 次有信号。", kind="mechanism",
              missing_en="an independent repetition", by=desk.by, at=desk.tick())  # fmt: skip
    add_link(Claim.objects.get(study=study, key="signal"), figure=Figure.objects.get(study=study, key="pilot.share"),
             relation="supports", by=desk.by, at=desk.tick())  # fmt: skip


def step(name: str) -> dict[str, Any]:
    """One step of a strip."""
    return {"title": said(name, "步骤"), "text": said("goes on", "继续")}


BLOCKS: dict[str, list[dict[str, Any]]] = {
    "why": [
        {"type": "paragraph", "sources": ["R1"], "text": said(
            "A repair gets a verdict at the end. Of [[pilot.usable]] queries, [[pilot.nonzero]] differ. [@R2] So.",
            "修复只在终点得到判分。[[pilot.usable]] 次查询中有 [[pilot.nonzero]] 次不同。[@R2]")},
        {"type": "strip", "steps": [step("Edit"), step("Grade"), step("Spread"), step("Ask")]},
    ],
    "idea": [
        {"type": "contributions", "items": [
            {"state": "done", "text": said("Built.", "已做。")},
            {"state": "to_verify", "text": said("Better than {{name:E2F}}.", "优于 {{name:E2F}}。")}]},
        {"type": "storyboard", "frames": [
            {"id": name, "title": said(name, "画面"), "text": said("What happens.", "说明。")}
            for name in shapes.FRAMES]},
    ],
    "verify": [{"type": "table", "columns": [said("Question", "问题"), said("Limit", "限度")], "rows": [
        [{"text": said("Does it tell?", "有信息吗?")}, {"state": "pending"}],
        [{"claim": "signal"}, {"figure": "pilot.share"}]]}],
    "results": [
        {"type": "figures", "items": [
            {"figure": "pilot.usable", "label": said("usable", "可用"), "sources": ["R1"]}, {"figure": "effect"}]},
        {"type": "bars", "items": [
            {"figure": "pilot.nonzero", "of": "pilot.usable", "label": said("nonzero", "有差异")},
            {"figure": "effect"}]},
        {"type": "details", "summary": said("Scope", "口径"), "blocks": [
            {"type": "paragraph", "text": said("[[pilot.lost]] were lost. [@R2]", "[[pilot.lost]] 次丢失。[@R2]")}]},
    ],
    "meaning": [{"type": "claims", "items": ["signal"]}],
    "routes": [{"type": "paragraph", "text": said(
        "Seen on {{date:2026-10-01}} in {{code:runs/a1.json}}.", "见于 {{date:2026-10-01}}。")}],
    "writing": [{"type": "progress", "items": [
        {"part": said("Method", "方法"), "state": said("drafted", "已有草稿"), "gap": said("review", "评审")}]}],
    "problems": [{"type": "problems", "items": [
        {"category": "writing", "priority": 2, "title": said("Words", "措辞"), "done": said("read again", "重读")},
        {"category": "execution", "priority": 3, "title": said("Later", "以后"), "done": said("run", "运行")},
        {"category": "execution", "priority": 1, "title": said("Recovery", "恢复"), "done": said("bound", "已绑定"),
         "action": said("Bind the checkpoint {{formula:M−B}}.", "绑定。")}]}],
    "next": [
        {"type": "decisions", "items": [{"title": said("Close it", "关闭"), "product": said("a manifest", "清单")}]},
        {"type": "strip", "decision": True, "steps": [step("Ready?"), step("Run"), step("Gain?"), step("Write")]},
    ],
    "milestones": [{"type": "timeline", "items": [{"date": "2026-09-28", "title": said("Stopped", "停止")}]}],
    "sources": [{"type": "sources"}],
    "versions": [{"type": "versions"}, {"type": "corrections", "items": [
        {"date": "2026-10-01", "what": said("The count was corrected.", "计数已更正。"),
         "figures": ["pilot.usable"]}]}],
}  # fmt: skip


def whole(**changed: Any) -> dict[str, Any]:
    """A document with every block and every kind of cell, as an author may write it."""
    return copy.deepcopy({
        "schema": shapes.SCHEMA, "study": "pilot", "page_date": "2026-11-01", "cutoff": "2026-10-01",
        "record_ends": "2026-09-28", "manuscript": said("Draft", "草稿"),
        "title": said("Credit for edits", "编辑的信用"),
        "subtitle": said("A pilot", "先导"), "state": said("Effect open", "效果待测"),
        "cards": [{"role": role, "text": said("[[pilot.share]] hold.", "[[pilot.share]] 成立。")}
                  for role in shapes.CARD_ROLES],
        "names": [{"text": "E2F", "why": said("an arm", "对照臂")}],
        "sections": [{"id": name, "title": said(*TITLES[name]), "summary": said("In short.", "概要。"),
                      "blocks": BLOCKS[name]} for name in shapes.SECTIONS],
        **changed,
    })  # fmt: skip
