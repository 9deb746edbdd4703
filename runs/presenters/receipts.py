"""Receipt chains: their heads, one entry, and a check of a whole chain from its stored bytes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.models import Execution, Group, Job, Plan, PlanVersion, Receipt, Run, StreamHead, Study, Trajectory
from runs.presenters.told import told
from workbench.contracts.canonical import parse_canonical, sha256_hex
from workbench.contracts.chain import genesis
from workbench.contracts.errors import CanonicalError


@dataclass(frozen=True)
class ChainCheck:
    """Result of walking one stream. ``broken_at`` None: every step holds, up to the head."""

    stream: str
    checked: int
    broken_at: int | None
    problem: str
    at: datetime

    @property
    def holds(self) -> bool:
        """Whether the chain is intact."""
        return self.broken_at is None


def _fault(receipt: Receipt, seq: int, prev: str) -> str:
    """The first thing wrong with an entry, or an empty string."""
    data = bytes(receipt.bytes)
    found = sha256_hex(data)
    if receipt.seq != seq:
        return _("seq: got %(got)d, expected %(want)d: an entry is missing") % {"got": receipt.seq, "want": seq}
    if found != receipt.sha256:
        return _("sha256: the bytes hash to %(got)s, expected %(want)s") % {"got": found, "want": receipt.sha256}
    if receipt.prev != prev:
        return _("prev: got %(got)s, expected %(want)s") % {"got": receipt.prev, "want": prev}
    try:
        body = parse_canonical(data)
    except CanonicalError as error:
        return told(error)
    named = {"stream": receipt.stream, "seq": receipt.seq, "prev": receipt.prev, "kind": receipt.kind}
    for name, value in named.items():
        if body.get(name) != value:
            return _("%(name)s: the row has %(got)s, the bytes %(want)s") % {
                "name": name,
                "got": value,
                "want": body.get(name),
            }
    return ""


def check_chain(stream: str) -> ChainCheck:
    """Walk a stream from its genesis to its head; stop at the first broken step. Reads in chunks."""
    prev, seq, now = genesis(stream), 0, timezone.now()
    for receipt in Receipt.objects.filter(stream=stream).order_by("seq").iterator(chunk_size=500):
        seq += 1
        problem = _fault(receipt, seq, prev)
        if problem:
            return ChainCheck(stream, seq, seq, problem, now)
        prev = receipt.sha256
    head = StreamHead.objects.filter(stream=stream).first()
    if head is not None and (head.seq, head.sha256) != (seq, prev):
        problem = _("head: it names entry %(got)d, the last stored entry is %(want)d: the tail is cut") % {
            "got": head.seq,
            "want": seq,
        }
        return ChainCheck(stream, seq, max(seq, 1), problem, now)
    return ChainCheck(stream, seq, None, "", now)


def pretty(receipt: Receipt) -> str:
    """The entry's bytes as indented text for reading; the bytes themselves stand beside it."""
    return json.dumps(json.loads(bytes(receipt.bytes)), indent=2, ensure_ascii=False)


def subject_link(receipt: Receipt) -> tuple[str, str] | None:
    """Where the subject of a receipt opens: (name, address)."""
    uid = receipt.subject_uid
    if uid is None:
        return None
    models: list[tuple[Any, str]] = [
        (Run, "runs:run"),
        (Group, "runs:group"),
        (Trajectory, "runs:trajectory"),
        (Job, "runs:job"),
    ]
    for model, name in models:
        row = model.objects.filter(uid=uid).first()
        if row is not None:
            return str(row), reverse(name, args=[uid])
    version = PlanVersion.objects.filter(uid=uid).select_related("plan__study").first()
    if version is not None:
        return str(version.plan), reverse("runs:plan", args=[version.plan.study.slug, version.plan.slug])
    plan = Plan.objects.filter(uid=uid).select_related("study").first()
    if plan is not None:
        return str(plan), reverse("runs:plan", args=[plan.study.slug, plan.slug])
    execution = Execution.objects.filter(uid=uid).select_related("plan_version__plan__study").first()
    if execution is not None:
        plan = execution.plan_version.plan
        name = _("execution of %(name)s") % {"name": plan.slug}
        return name, reverse("runs:results", args=[plan.study.slug, plan.slug])
    study = Study.objects.filter(uid=uid).first()
    return None if study is None else (study.slug, reverse("runs:study", args=[study.slug]))


def _uids(streams: Iterable[str], kind: str) -> list[uuid.UUID]:
    found = []
    for stream in streams:
        head, _colon, tail = stream.partition(":")
        if head == kind:
            try:
                found.append(uuid.UUID(tail))
            except ValueError:
                continue
    return found


def stream_names(streams: Iterable[str]) -> dict[str, str]:
    """Readable name of each stream that belongs to a run, a plan, an execution or a study. Four queries."""
    listed = list(streams)
    names = {
        f"run:{uid}": _("run %(name)s") % {"name": f"{name} · {slug}" if slug else name}
        for uid, name, slug in Run.objects.filter(uid__in=_uids(listed, "run")).values_list(
            "uid", "name", "plan_version__plan__slug"
        )
    }
    for uid, slug in Plan.objects.filter(uid__in=_uids(listed, "plan")).values_list("uid", "slug"):
        names[f"plan:{uid}"] = _("plan %(name)s") % {"name": slug}
    executions = Execution.objects.filter(uid__in=_uids(listed, "execution"))
    for uid, slug in executions.values_list("uid", "plan_version__plan__slug"):
        names[f"execution:{uid}"] = _("execution of %(name)s") % {"name": slug}
    for uid, slug in Study.objects.filter(uid__in=_uids(listed, "study")).values_list("uid", "slug"):
        names[f"study:{uid}"] = _("study %(name)s") % {"name": slug}
    return names
