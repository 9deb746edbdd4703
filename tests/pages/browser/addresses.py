"""Addresses of pages that hang on a row of the world, for the walk over every page."""

from __future__ import annotations

from django.utils import timezone

from runs.actions.actors import person_actor
from runs.actions.drafts import create_draft
from runs.models import Checkpoint, Receipt, SavedFilter, TaskSet, Trajectory, UpdateBatch, User
from runs.presenters.catalogue.starts import MINIMAL
from tests.branches.rows import branch_on
from tests.controls.rows import controls_on
from tests.pages import elsewhere
from tests.pages.state import World


def more(world: World, trajectory: Trajectory, owner: User) -> dict[str, str]:
    """A draft, a saved filter, a sibling, a checkpoint, a task and its set; ``owner`` writes the first two."""
    now = timezone.now()
    text = MINIMAL.format(study=world.study.slug, name="walk")
    draft = create_draft(world.study, "walk", text, by=person_actor(owner), at=now)
    kept = SavedFilter.objects.create(user=owner, name="cut", page="groups", query="is:cut", created_at=now)
    sibling = Trajectory.objects.filter(group=trajectory.group).exclude(pk=trajectory.pk).earliest("slot")
    task = trajectory.group.task
    one, other = world.runs["e3-s17"], world.runs["e2f-s17"]
    foreign = elsewhere.imported(world.study, now, [elsewhere.item(1), elsewhere.item(2)])
    elsewhere.write(one, "l1.grad_norm", [1.0, 1.5, 1.25], epoch="9")
    elsewhere.write(other, "l1.grad_norm", [1.0, 2.5, 1.25], epoch="9")
    return {
        "logged": f"/logged/{elsewhere.full(world.study, now).run.uid}/",
        "foreign": f"/logged/{foreign.run.uid}/rollouts/{foreign.run.imported_rollouts.earliest('pk').uid}/",
        "layers_side": f"/layers/compare/?run={one.uid}&run={other.uid}",
        "divergence": f"/trajectories/{trajectory.uid}/against/{sibling.uid}/",
        "checkpoint": f"/checkpoints/{Checkpoint.objects.latest('pk').uid}/",
        "task": f"/tasks/{task.uid}/",
        "task_set": f"/task-sets/{TaskSet.objects.get(pk=task.task_set_id).sha256}/",
        "controls": f"/controls/{controls_on(TaskSet.objects.get(pk=task.task_set_id), now).uid}/",
        "branches": f"/trajectories/{branch_on(trajectory, now).trajectory.uid}/branches/",
        "filter": f"/filters/{kept.pk}/",
        "layers": f"/runs/{world.runs['e3-s17'].uid}/layers/",
        "update": f"/updates/{UpdateBatch.objects.filter(run=world.runs['e3-s17']).earliest('batch').uid}/",
        "discarded": f"/runs/{world.runs['e3-s17'].uid}/discarded/",
        "both": f"/compare/?run={world.runs['e3-s17'].uid}&run={world.runs['e2f-s17'].uid}",
        "draft": f"/studies/{world.study.slug}/plans/{draft.slug}/",
        "entry": f"/receipts/{Receipt.objects.latest('pk').sha256}/",
    }
