"""Attacks on receipts, heads, anchors and signatures."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection

from evidence.attacks.attack import COPY, REFUSED, TRIGGERS, VERIFY, Attack, Guard, step
from evidence.attacks.world import AttackWorld
from evidence.models import Review, SignedHead
from evidence.outward.keys import head_bytes
from runs.models import Anchor, Receipt
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.chain import genesis


def _last(world: AttackWorld) -> Receipt:
    found = Receipt.objects.filter(stream=f"evidence:{world.study.uid}").order_by("seq").last()
    assert found is not None
    return found


def _cut(world: AttackWorld) -> None:
    """Take the newest receipt of the study away, and set the head back so that the chain is whole."""
    last = _last(world)
    world.sql("DELETE FROM runs_receipt WHERE id = %s", last.pk)
    world.sql(
        "UPDATE runs_streamhead SET seq = %s, sha256 = %s WHERE stream = %s", last.seq - 1, last.prev, last.stream
    )
    world.sql("DELETE FROM evidence_notesversion WHERE uid = %s", last.subject_uid.hex)


def truncated(world: AttackWorld) -> None:
    """The tail is cut; the anchor still names it."""
    _cut(world)


def truncated_with_anchors(world: AttackWorld) -> None:
    """The tail is cut, and every anchor and signature that names it with it."""
    _cut(world)
    newest = Anchor.objects.order_by("seq").last()
    assert newest is not None
    world.sql("DELETE FROM evidence_signedhead WHERE anchor_id = %s", newest.pk)
    world.sql("DELETE FROM runs_anchor WHERE id = %s", newest.pk)


def rewritten_history(world: AttackWorld) -> None:
    """The last receipt says something else; hash, head, anchor and signature are made anew with another key."""
    last, newest = _last(world), Anchor.objects.order_by("seq").last()
    assert newest is not None
    value = parse_canonical(bytes(last.bytes))
    value["body"]["reason"] = "as it should have been"
    data = canonical_bytes(value)
    sha256 = sha256_hex(data)
    world.sql("UPDATE runs_receipt SET bytes = %s, sha256 = %s WHERE id = %s", data, sha256, last.pk)
    world.sql("UPDATE runs_streamhead SET sha256 = %s WHERE stream = %s", sha256, last.stream)
    world.sql("UPDATE evidence_notesversion SET reason = 'as it should have been' WHERE uid = %s", last.subject_uid.hex)
    heads = [[name, seq, sha256 if name == last.stream else head] for name, seq, head in _heads(newest)]
    anchor = canonical_bytes({**parse_canonical(bytes(newest.bytes)), "heads": heads})
    world.sql("UPDATE runs_anchor SET bytes = %s, sha256 = %s WHERE id = %s", anchor, sha256_hex(anchor), newest.pk)
    key = Ed25519PrivateKey.generate()
    signed = head_bytes(newest.seq, sha256_hex(anchor), heads, key.public_key())
    world.sql(
        "UPDATE evidence_signedhead SET bytes = %s, signature = %s, fingerprint = %s WHERE anchor_id = %s",
        signed, key.sign(signed), sha256_hex(key.public_key().public_bytes_raw()), newest.pk,
    )  # fmt: skip


def _heads(anchor: Anchor) -> list[list[object]]:
    found: list[list[object]] = parse_canonical(bytes(anchor.bytes))["heads"]
    return found


def forged_head(world: AttackWorld) -> None:
    """The stream's head names another last receipt."""
    last = _last(world)
    world.sql("UPDATE runs_streamhead SET sha256 = %s WHERE stream = %s", genesis("another"), last.stream)


def reordered(world: AttackWorld) -> None:
    """Two receipts change places."""
    last = _last(world)
    world.sql("UPDATE runs_receipt SET seq = 1000000 WHERE id = %s", last.pk)
    world.sql("UPDATE runs_receipt SET seq = %s WHERE stream = %s AND seq = %s", last.seq, last.stream, last.seq - 1)
    world.sql("UPDATE runs_receipt SET seq = %s WHERE id = %s", last.seq - 1, last.pk)


def backdated(world: AttackWorld) -> None:
    """A receipt is said to be older than it is."""
    world.sql("UPDATE runs_receipt SET at = '2029-01-01 00:00:00' WHERE id = %s", _last(world).pk)


def undecodable(world: AttackWorld) -> None:
    """A receipt's bytes are no text at all: it is one problem, and the rest is still looked at."""
    last = _last(world)
    world.sql("UPDATE runs_receipt SET bytes = %s, sha256 = %s WHERE id = %s", b"\xff", sha256_hex(b"\xff"), last.pk)


def removed_anchor(world: AttackWorld) -> None:
    """The anchor of a closing is taken away."""
    world.sql("DELETE FROM evidence_signedhead WHERE id > %s", -1)
    world.sql("DELETE FROM runs_anchor WHERE id > %s", -1)


def renamed_actor(world: AttackWorld) -> None:
    """A reviewer's name is put under what somebody else wrote."""
    world.sql("UPDATE runs_actor SET name = 'famous' WHERE id = %s", world.reviewer.pk)


def forged_signature(world: AttackWorld) -> None:
    """A signature that the key did not make."""
    head = SignedHead.objects.order_by("pk")[0]
    signature = bytearray(bytes(head.signature))
    signature[0] ^= 1
    world.sql("UPDATE evidence_signedhead SET signature = %s WHERE id = %s", bytes(signature), head.pk)


def foreign_signature(world: AttackWorld) -> None:
    """A copy that another key signed is offered as ours."""
    newest = Anchor.objects.order_by("seq").last()
    assert newest is not None
    key = Ed25519PrivateKey.generate()
    signed = head_bytes(newest.seq, newest.sha256, _heads(newest), key.public_key())
    world.kept = {**world.kept, "heads": [{"signed": signed.decode(), "signature": key.sign(signed).hex()}]}


def edited_through_models(world: AttackWorld) -> None:
    """A review is edited with the product's own classes."""
    Review.objects.filter(pk=world.review("share").pk).update(reason="Quite right.")


def edited_with_triggers(world: AttackWorld) -> None:
    """A review is edited by SQL, with the triggers in place."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE evidence_review SET verdict = 'accept' WHERE verdict = 'dispute'")
    if Review.objects.filter(verdict="dispute").exists():
        raise AssertionError("changed no row")


_KEY = (
    Guard("evidence.outward.keys:Head.fingerprint", "", plain=True),
    Guard("evidence.actions.signing:fingerprint", ""),
)

ATTACKS = (
    Attack("truncated-chain", "The newest receipt is deleted and the head set back", truncated, VERIFY,
           (1, "runs_receipt", "sha256"), step("check_chains")),
    Attack("truncated-chain-and-anchors", "The tail is cut together with every anchor that names it",
           truncated_with_anchors, COPY, "truncated", (Guard("evidence.actions.signing:_streams", []),)),
    Attack("rewritten-history", "A receipt is rewritten, and head, anchor and signature with it", rewritten_history,
           COPY, "forged", (Guard("evidence.actions.signing:_streams", []),)),
    Attack("forged-head", "A stream's head names another receipt", forged_head, VERIFY,
           (1, "runs_streamhead", "sha256"), step("check_chains")),
    Attack("reordered-receipts", "Two receipts change places", reordered, VERIFY, (1, "runs_receipt", "prev"),
           step("check_chains")),
    Attack("backdated-receipt", "A receipt's time is moved", backdated, VERIFY, (1, "runs_receipt", "at"),
           step("check_chains")),
    Attack("undecodable-receipt", "A receipt's bytes are no text", undecodable, VERIFY, (1, "runs_receipt", "bytes"),
           step("check_chains")),
    Attack("removed-anchor", "The anchor of a closing is removed", removed_anchor, VERIFY,
           (1, "runs_anchor", "heads"), step("check_chains")),
    Attack("renamed-actor", "An actor gets another name", renamed_actor, VERIFY, (1, "runs_actor", "uid"),
           step("check_chains")),
    Attack("forged-signature", "A signature that the key did not make", forged_signature, VERIFY,
           (17, "evidence_signedhead", "signature"), step("check_signed_heads")),
    Attack("foreign-signature", "A copy of the heads signed by another key", foreign_signature, COPY, "key",
           _KEY),
    Attack("edited-through-models", "History edited with the product's own classes", edited_through_models, REFUSED,
           "expected an insert", (Guard("workbench.db:_refuse"),)),
    Attack("edited-with-triggers", "History edited by SQL in the running database", edited_with_triggers, TRIGGERS,
           "append-only"),
)  # fmt: skip
