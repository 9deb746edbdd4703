"""Attacks on plans, captures, adapters, rows, metrics and closures."""

from __future__ import annotations

from evidence.attacks.attack import REFUSED, VERIFY, Attack, Guard, step
from evidence.attacks.world import AttackWorld
from runs.actions.execution import lock_execution
from runs.actions.transitions import move_execution
from runs.models import Arm, Checkpoint, Document, Group, MetricChunk, TrajectoryCredit, UpdateBatch
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex


def edited_plan(world: AttackWorld) -> None:
    """The frozen plan asks something else by now; its hash is made anew."""
    body = parse_canonical(bytes(world.run.version.bytes))
    body["plan"]["question"]["en"] = "What we found?"
    data = canonical_bytes(body)
    world.sql(
        "UPDATE runs_planversion SET bytes = %s, sha256 = %s WHERE id = %s",
        data,
        sha256_hex(data),
        world.run.version.pk,
    )


def late_plan(world: AttackWorld) -> None:
    """The plan was frozen after its groups were collected."""
    world.sql("UPDATE runs_planversion SET created_at = '2031-01-01 00:00:00'")


def widened_arm(world: AttackWorld) -> None:
    """An arm gets seeds that the plan does not name."""
    world.sql('UPDATE runs_arm SET seeds = \'["1", "2", "3"]\' WHERE id = %s', Arm.objects.all()[0].pk)


def edited_capture(world: AttackWorld) -> None:
    """One bit of what a policy sampled."""
    world.flip(Group.objects.filter(purpose="train")[0].capture_blob_sha256)


def swapped_capture(world: AttackWorld) -> None:
    """A group is given the capture file of another one."""
    first, second = Group.objects.filter(purpose="train").order_by("pk")[:2]
    world.sql(
        "UPDATE runs_group SET capture_blob_sha256 = %s, capture_blob_bytes = %s WHERE id = %s",
        second.capture_blob_sha256, second.capture_blob_bytes, first.pk,
    )  # fmt: skip


def replaced_adapter_bytes(world: AttackWorld) -> None:
    """Other weights under the adapter's name."""
    found = Checkpoint.objects.filter(run__isnull=False).order_by("-pk")[0]
    world.overwrite(found.sha256, b"better adapter")


def replaced_adapter(world: AttackWorld) -> None:
    """The checkpoint names another adapter, which is in the store."""
    sha256 = world.store.put(b"better adapter")
    found = Checkpoint.objects.filter(run__isnull=False).order_by("-pk")[0]
    world.sql("UPDATE runs_checkpoint SET sha256 = %s WHERE id = %s", sha256, found.pk)


def better_reward(world: AttackWorld) -> None:
    """A reward becomes higher."""
    world.sql("UPDATE runs_trajectory SET reward_total = 1 WHERE id = (SELECT MIN(id) FROM runs_trajectory)")


def dropped_trajectory(world: AttackWorld) -> None:
    """An evaluated item that failed is taken out of the denominator."""
    world.sql("DELETE FROM runs_evaluationitem WHERE id = (SELECT MAX(id) FROM runs_evaluationitem)")


def other_condition(world: AttackWorld) -> None:
    """A closed cell's items are counted under another condition."""
    world.sql("UPDATE runs_evaluationitem SET repeat = repeat + 7")


def edited_credit(world: AttackWorld) -> None:
    """A trajectory is said to have trained fewer tokens."""
    world.sql("UPDATE runs_trajectorycredit SET trained_tokens = 1 WHERE id = %s", TrajectoryCredit.objects.all()[0].pk)


def edited_trace(world: AttackWorld) -> None:
    """One bit of an update's trace."""
    found = UpdateBatch.objects.exclude(trace_blob_sha256=None)[0]
    assert found.trace_blob_sha256 is not None
    world.flip(found.trace_blob_sha256)


def edited_metric(world: AttackWorld) -> None:
    """A point of a metric becomes another."""
    world.sql("UPDATE runs_metricpoint SET value = 0.95 WHERE id = (SELECT MIN(id) FROM runs_metricpoint)")


def changed_chunk(world: AttackWorld) -> None:
    """A sealed chunk of logged points is exchanged."""
    found = MetricChunk.objects.order_by("pk")[0]
    data = bytearray(bytes(found.payload))
    data[-1] ^= 1
    world.sql("UPDATE runs_metricchunk SET payload = %s WHERE id = %s", bytes(data), found.pk)


def edited_closure(world: AttackWorld) -> None:
    """The closure counts fewer jobs; its hash is made anew."""
    found = Document.objects.get(kind="closure")
    value = parse_canonical(bytes(found.bytes))
    value["counts"]["items"] = 1
    data = canonical_bytes(value)
    world.sql("UPDATE runs_document SET bytes = %s, sha256 = %s WHERE id = %s", data, sha256_hex(data), found.pk)


def removed_closure(world: AttackWorld) -> None:
    """A closed execution loses its closure."""
    world.sql("DELETE FROM runs_document WHERE kind = 'closure'")


def reopened(world: AttackWorld) -> None:
    """A closed execution is set running again, to collect more until it looks better."""
    execution = lock_execution(world.run.execution)
    move_execution(execution, "running", reason="once more", actor=world.author, at=world.later)


ATTACKS = (
    Attack("edited-plan", "The bytes of a frozen plan are edited and hashed anew", edited_plan, VERIFY,
           (2, "runs_planversion", "uid"), step("check_plans")),
    Attack("late-plan", "A plan that was frozen after its data", late_plan, VERIFY,
           (2, "runs_planversion", "created_at"), step("check_plans")),
    Attack("widened-arm", "An arm gets another seed", widened_arm, VERIFY, (2, "runs_arm", "seeds"),
           step("check_plans")),
    Attack("edited-capture", "One bit of a capture", edited_capture, VERIFY, (5, "runs_blobref", "sha256"),
           step("check_blobs")),
    Attack("swapped-capture", "A group with the captures of another", swapped_capture, VERIFY,
           (6, "runs_turn", "capture_sha256"), step("check_captures")),
    Attack("replaced-adapter-bytes", "Other weights under an adapter's name", replaced_adapter_bytes, VERIFY,
           (5, "runs_blobref", "sha256"), step("check_blobs")),
    Attack("replaced-adapter", "A checkpoint that names another adapter", replaced_adapter, VERIFY,
           (4, "runs_checkpoint", "sha256"), step("check_rows")),
    Attack("better-reward", "A reward is raised in its row", better_reward, VERIFY,
           (4, "runs_trajectory", "reward_total"), step("check_rows")),
    Attack("smaller-denominator", "An evaluated item is removed", dropped_trajectory, VERIFY,
           (4, "runs_evaluationitem", "id"), step("check_rows")),
    Attack("relabelled-items", "Evaluated items are relabelled after the closing", other_condition, VERIFY,
           (9, "runs_document", "sha256"), step("check_closures")),
    Attack("edited-credit", "Fewer trained tokens than there were", edited_credit, VERIFY,
           (4, "runs_trajectorycredit", "trained_tokens"), step("check_rows")),
    Attack("edited-trace", "One bit of an update's trace", edited_trace, VERIFY,
           (5, "runs_blobref", "sha256"), step("check_blobs")),
    Attack("edited-metric", "A metric point is raised", edited_metric, VERIFY, (8, "runs_metricpoint", "value"),
           step("check_metrics")),
    Attack("changed-metric-chunk", "A sealed chunk of logged points is changed", changed_chunk, VERIFY,
           (8, "runs_metricchunk", ""), step("check_logged")),
    Attack("edited-closure", "A closure with other counts, hashed anew", edited_closure, VERIFY,
           (9, "runs_document", "counts"), step("check_closures")),
    Attack("removed-closure", "A closed execution without its closure", removed_closure, VERIFY,
           (9, "runs_execution", "state"), step("check_closures")),
    Attack("reopened-execution", "A closed execution goes on", reopened, REFUSED, "closed",
           (Guard("runs.actions.transitions:_check"),)),
)  # fmt: skip
