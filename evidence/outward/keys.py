"""The Ed25519 key of this home, and how a signed head reads. No database here: a bundle is checked with this alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.errors import ContractError
from workbench.paths import Home

HEAD_SCHEMA = "workbench.signed_head/1"


class SignatureError(ContractError):
    """A signature that does not hold, or a head that does not say what it must."""


def signing_key(home: Home) -> Ed25519PrivateKey:
    """The private key of a home, made at its first use. Raises ``ValueError`` where the file holds another thing."""
    text = home.ensure_signing_key(_new_key)
    key = load_pem_private_key(text.encode() + b"\n", password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{home.signing_key}: got a {type(key).__name__}, expected an Ed25519 private key")
    return key


def _new_key() -> str:
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def raw(key: Ed25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def fingerprint(key: Ed25519PublicKey) -> str:
    """SHA-256 of the raw public key: what people compare and keep."""
    return sha256_hex(raw(key))


def public_pem(key: Ed25519PublicKey) -> str:
    """The public key as PEM text."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def read_public(pem: str | bytes) -> Ed25519PublicKey:
    """A public key from PEM. Raises ``SignatureError``."""
    try:
        key = load_pem_public_key(pem.encode() if isinstance(pem, str) else pem)
    except ValueError as error:
        raise SignatureError(f"key: {error}, expected an Ed25519 public key in PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(f"key: got a {type(key).__name__}, expected an Ed25519 public key")
    return key


@dataclass(frozen=True)
class Head:
    """A signed head as read from its bytes. ``heads``: [stream, count of receipts, hash of the last one]."""

    anchor_seq: int
    anchor_sha256: str
    receipts: int
    heads: list[list[Any]]
    public_key: bytes

    @property
    def fingerprint(self) -> str:
        """Of the key that the head names."""
        return sha256_hex(self.public_key)


def head_bytes(anchor_seq: int, anchor_sha256: str, heads: list[list[Any]], key: Ed25519PublicKey) -> bytes:
    """What is signed: the anchor, every stream with its count and hash, the sum of counts, and the key itself."""
    return canonical_bytes(
        {
            "schema": HEAD_SCHEMA,
            "anchor": {"seq": anchor_seq, "sha256": anchor_sha256},
            "receipts": sum(count for _stream, count, _sha256 in heads),
            "heads": heads,
            "public_key": raw(key).hex(),
        }
    )


def read_head(data: bytes, signature: bytes) -> Head:
    """A signed head. Raises ``SignatureError`` unless its key signed exactly these bytes and its counts add up."""
    try:
        value = parse_canonical(data)
        if value["schema"] != HEAD_SCHEMA:
            raise SignatureError(f"schema: got {value['schema']!r}, expected {HEAD_SCHEMA}")
        found = Head(
            value["anchor"]["seq"], value["anchor"]["sha256"], value["receipts"], value["heads"],
            bytes.fromhex(value["public_key"]),
        )  # fmt: skip
        total = sum(int(count) for _stream, count, _sha256 in found.heads)
        key = Ed25519PublicKey.from_public_bytes(found.public_key)
    except SignatureError:
        raise
    except (ContractError, KeyError, TypeError, ValueError) as error:
        raise SignatureError(f"head: {type(error).__name__}: {error}, expected a signed head") from error
    check_signature(key, data, signature)
    if total != found.receipts:
        raise SignatureError(f"receipts: got {found.receipts}, expected {total}, the sum over its streams")
    return found


def check_signature(key: Ed25519PublicKey, data: bytes, signature: bytes) -> None:
    """Raise ``SignatureError`` unless ``key`` made ``signature`` over ``data``."""
    try:
        key.verify(signature, data)
    except InvalidSignature as error:
        raise SignatureError(
            f"signature: got one that key {fingerprint(key)[:16]} did not make over these bytes, expected its own"
        ) from error
