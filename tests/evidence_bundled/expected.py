"""Key figures of both reference studies as pages show them, written down by hand from the studies' own texts."""

from __future__ import annotations

EDIT_CREDIT: dict[str, str] = {
    # the funnel: of all planned trajectories, what was excluded and what was usable
    "pilot.tasks": "40", "pilot.per_task": "8", "pilot.planned": "320", "pilot.product": "320",
    "pilot.format_error": "41", "pilot.no_block": "34", "pilot.no_original": "1", "pilot.excluded": "76",
    "pilot.usable": "244", "pilot.accounted": "320", "pilot.nonzero": "92", "pilot.nonzero_share": "37.7 %",
    # failed originals, signs, cap
    "failed.share": "17/111", "failed.known": "150", "failed.positive": "12", "failed.negative": "5",
    "failed.f2p": "6", "failed.regression": "6", "failed.tasks": "14", "failed.repositories": "6",
    "cap.active": "83", "cap.share": "90.2 %", "credit.median_share": "2.10", "credit.median_shrinkage": "0.181",
    "artefact.built": "282", "artefact.empty": "47", "artefact.median_paths": "0.5", "artefact.absent": "1",
    # replays, repeats, service time
    "replay.agree": "120", "repeat.agree": "244", "repeat.concurrency": "24", "service.mean": "237.3",
    "service.high": "416.9", "service.mean_repeat": "115.1", "service.high_repeat": "189.9",
    # environment controls after the correction
    "env.tasks": "500", "env.controls": "1,000", "env.cohorts": "23", "env.raw": "995", "env.strict": "862",
    "env.binary": "887", "env.unresolved": "113", "env.partial": "20", "env.mismatch": "5",
    # the run, its audit, the protocol, the manuscript
    "run.progress": "34/80", "run.checkpoint": "30", "run.exit_code": "137", "audit.tensors": "427",
    "audit.changed": "329", "audit.elements": "823,171,568", "protocol.endpoint": "80", "protocol.train": "149",
    "protocol.aliases": "2,384", "protocol.dev": "39", "protocol.official": "500", "protocol.sealed": "100",
    "protocol.rollouts": "16", "protocol.seeds": "3", "protocol.seeds_rest": "2", "protocol.remaining": "9",
    "paper.pages": "15", "paper.body": "9",
}  # fmt: skip
CORRECTED: dict[str, tuple[str, str]] = {
    "env.raw": ("999", "995"), "env.strict": ("779", "862"), "env.binary": ("798", "887"),
    "env.unresolved": ("101", "113"), "env.partial": ("18", "20"),
}  # fmt: skip
OPEN = ("effect.m_b", "effect.m_o", "effect.m_e", "cost.training", "cost.queueing")
HASHES: dict[str, str] = {
    "R1": "90a6a857", "R2": "f3455756", "R3": "c0d214dc", "R4": "5b9ce356", "R5": "45ef82e6", "R6": "3d9ae3c2",
    "R7": "824026db", "R8": "7756cd4c", "PDF": "096a8ff6",
}  # fmt: skip
MEDICAL: dict[str, str] = {
    # context run
    "design.group": "4", "context.groups": "24", "context.trajectories": "96", "context.signal": "8",
    "context.no_signal_share": "16/24", "context.steps": "16", "context.epochs": "2", "context.cap": "48",
    "context.time": "11,016", "context.modules": "196", "context.calls": "126", "context.failures": "0",
    "context.fatal": "0", "schedule.share": "52/84", "reward.probe": "6/6", "reward.probe_slots": "24",
    "reward.evidence": "0.45", "reward.process": "0.45", "reward.efficiency": "0.10",
    # the strict pair in training, and the broken run before it
    "pair.groups": "12", "pair.cap": "24", "pair.vanilla.trajectories": "48", "pair.suffix.trajectories": "48",
    "pair.vanilla.signal": "11", "pair.suffix.signal": "12", "pair.vanilla.steps": "22", "pair.suffix.steps": "24",
    "pair.vanilla.fatal": "7", "pair.suffix.fatal": "15", "pair.vanilla.masked": "0", "pair.suffix.masked": "6,165",
    "early.groups": "4", "early.rollouts": "16", "early.steps": "6",
    # held out
    "test.tasks": "27", "standard.finish.vanilla": "27/27", "standard.finish.suffix": "27/27",
    "standard.valid.vanilla": "27/27", "standard.valid.suffix": "27/27", "standard.premature.vanilla": "25/27",
    "standard.premature.suffix": "25/27", "stress.finish.vanilla": "8/27", "stress.finish.suffix": "27/27",
    "stress.failure.vanilla": "19/27", "stress.failure.suffix": "0/27", "stress.recovery.vanilla": "1/27",
    "stress.recovery.suffix": "13/27", "stress.exposed.vanilla": "1/11", "stress.exposed.suffix": "13/15",
    "stress.reward.vanilla": "0.2078", "stress.reward.suffix": "0.6001", "stress.repeat.vanilla": "3/27",
    "stress.repeat.suffix": "14/27", "stress.fatal.vanilla": "0/27", "stress.fatal.suffix": "9/27",
    "stress.continued": "9/9", "stress.after_success": "7", "stress.after_finish": "2",
    # gate and closure
    "gate.seen": "2", "gate.minimum": "3", "closure.jobs": "14/14", "closure.items": "392/392",
    "closure.standard": "280", "closure.stress": "112", "closure.total": "392", "closure.captures": "1,003",
    "closure.checkpoints": "5",
}  # fmt: skip
