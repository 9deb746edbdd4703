"""What actions on plans, runs, people and logs refuse, as patterns that pages read in the reader's language.

A hole named ``said`` holds a message of its own, ``state``, ``was`` and ``status`` a state, ``table`` what has it,
``role`` a role, ``field`` a word of ``FIELDS``, ``kind`` what bytes are of; what people wrote stands as they wrote it.
Where two read the same message, the narrower one stands first.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext_noop as _

PLANS = (
    _("plan %(plan)s: it is %(state)s; its bytes never change. Save under another name."),
    _("plan %(plan)s: it is %(state)s, expected a draft"),
    _("plan %(plan)s: got revision %(seen)s, expected %(now)s, the newest; nothing was saved"),
    _("plan %(plan)s: got revision %(seen)s, expected %(now)s, the newest"),
    _("plan %(plan)s: another writer saved revision %(n)s first"),
    _("plan %(uid)s: its bytes hash to %(found)s, expected %(hash)s"),
    _("name: got '%(name)s', expected one that no plan of study %(study)s has"),
    _("inspection: it is %(state)s: %(said)s, expected succeeded"),
    _("inspection: it is %(state)s, expected succeeded"),
    _("inspection: got revision %(seen)s, expected %(now)s, the newest"),
    _("inspection: got none for revision %(n)s of %(plan)s, expected one"),
    _("task set: got none stored with hash %(hash)s, expected the one of the inspection; have a worker look again"),
)
RUNS = (
    _("%(table)s %(name)s: it is %(state)s already"),
    _("%(table)s %(name)s: got %(was)s -> %(state)s, expected a transition of its state table"),
    _("%(table)s %(name)s: no longer %(state)s"),
    _("run %(name)s: it is not paused"),
    _("by: got nobody, expected an actor; there is no anonymous mutation"),
    _("actor: got nobody, expected a signed-in person or a token; there is no anonymous change"),
    _("execution: it is interrupted, expected a recorded recovery plan: study recover SLUG --plan FILE"),
    _("execution %(uid)s: it is not interrupted, there is nothing to recover"),
    _("recovery_plan: got nothing for %(names)s, expected a value for each"),
    _("recovery_plan.checkpoint: got '%(given)s', expected that of each run that has not ended: '%(expected)s'"),
    _("recovery_plan.%(name)s: got %(type)s, expected text"),
    _("decision, continuations: got %(given)s, expected two whole numbers"),
    _("trajectory %(uid)s: it is %(status)s, expected a valid one with captures"),
    _("decision: got %(n)s, expected 0 to %(most)s"),
    _("continuations: got %(n)s, expected 1 to %(most)s"),
    _("checkpoint: got one of base model %(hash)s, expected the trajectory's"),
    _("environment: got nothing, expected an id, a registered name or package.module:Class"),
    _("rule: got '%(rule)s', expected one of %(known)s"),
    _("rule: got %(rule)s, which is %(outcome)s on this run, expected a reading that fired"),
    _("verdict: got '%(verdict)s', expected confirmed or dismissed"),
    _("fired_sha256: got '%(seen)s', expected %(now)s: the run has gone on, look again"),
)
PEOPLE = (
    _("user: got '%(name)s', expected the name of an active account"),
    _("user: got %(name)s, who is deactivated, expected an active user"),
    _("user: %(name)s is the last active site admin; make another first"),
    _("by: got %(name)s, expected a site admin"),
    _("role: got '%(given)s', expected one of %(known)s"),
    _("role: %(name)s is no %(role)s of %(study)s; nothing to remove"),
    _("role: %(name)s is the last active admin of %(study)s; give the role to another first"),
    _(
        "family: got '%(family)s', expected nothing (the person's own) or letters, digits and . _ -, at most 64, "
        "and neither %(own)s nor %(service)s"
    ),
    _("name: got '%(name)s', expected letters, digits and . _ @ + -, at most 64"),
    _("name: got '%(name)s', which is taken (case does not count), expected another"),
    _("name: got %(n)s characters, expected 1 to %(most)s printable ones"),
    _("name: got %(n)s characters, expected 1 to %(most)s readable ones"),
    _("scopes: got none, expected some of %(known)s"),
    _("scopes: got %(given)s, expected some of %(known)s"),
    _("expiry: got '%(given)s', expected one of %(known)s"),
    _("expires_at: got a time without a zone, expected one with a zone"),
    _("expires_at: got %(given)s, expected a time after %(now)s, within ten years"),
    _("token %(prefix)s: got user %(name)s, expected its owner or a site admin"),
    _("tokens: got %(n)s that are active, expected fewer; revoke one first"),
    _("filters: got %(n)s saved ones, expected fewer; delete one first"),
    _("page: got '%(page)s', expected one of %(known)s"),
    _("query: got %(n)s characters, expected 1 to %(most)s"),
    _("query: %(said)s"),
    _("slug: got '%(slug)s', expected 3 to 64 lower-case letters, digits or dashes, and not the word new"),
    _("slug: got '%(slug)s', which is taken, expected another name"),
    _("visibility: got '%(given)s', expected %(known)s"),
)
LOGS = (
    _("path: got '%(path)s' of no known format, expected one of %(known)s"),
    _("path: got '%(path)s', which does not exist, expected a file or folder"),
    _("path: got '%(path)s' without a file of %(format)s, expected at least one"),
    _("path: got %(n)s characters, expected 1 to %(most)s"),
    _("path: got '%(path)s', expected no control character and no backslash"),
    _("path: got '%(path)s', expected a relative path without empty parts, . and .."),
    _("path: got '%(path)s', which is a folder of this run, expected the path of a file"),
    _("path: got '%(path)s' below '%(file)s', which is a file of this run"),
    _("format: got '%(format)s', expected one of %(known)s"),
    _("files: got more than %(n)s in %(name)s, expected at most that many"),
    _("cursor.file: got '%(file)s', expected a file of the source"),
    _("name: got '%(name)s', expected 1 to %(most)s characters without control characters"),
    _("source: got '%(name)s' no longer in its place, expected it unchanged"),
    _("source: got SHA-256 %(found)s, expected %(hash)s; import it anew"),
    _("source: got '%(name)s' changed while it was read, expected it unchanged"),
    _("import %(uid)s: another process goes on with it"),
    _("run: got %(uid)s of origin %(origin)s, expected a run that is logged from elsewhere"),
    _("run: got %(id)s, which is deleted, expected an active run; restore it first"),
    _("run %(id)s: it is linked to another plan already"),
    _("origin: got '%(origin)s', expected %(first)s or %(second)s"),
    _("status: got '%(status)s', expected one of %(known)s"),
    _("parameters: got more than %(n)s in one run, expected fewer"),
    _("tags: got more than %(n)s in one run, expected fewer"),
    _("key: got '%(key)s', which a run of study %(study)s has, expected a new one"),
    _("plan: got %(uid)s of study %(other)s, expected one of study %(study)s"),
    _("%(key)s: got '%(now)s', expected '%(before)s', which was logged before"),
)
STORE = (
    _("blob: got no file for %(hash)s, expected it in the store"),
    _("blob: got bytes that hash to %(found)s, expected %(hash)s"),
    _("blob %(hash)s: got %(n)s bytes at %(offset)s, expected %(length)s"),
    _("magic: got %(given)s, expected %(known)s"),
    _("schema: got %(given)s, expected '%(known)s'"),
    _("array: got %(n)s bytes, expected a multiple of %(size)s"),
    _("arrays: got another order or other types, expected those of %(schema)s"),
    _("arrays: got %(given)s, expected one name, a known type and a length"),
    _("arrays: got %(given)s, expected a list"),
    _("end: got %(n)s bytes after the arrays, expected 0"),
    _("%(name)s: got %(n)s bytes, expected %(size)s"),
    _("$: got JSON that is not in canonical form, expected RFC 8785 bytes"),
    _("$: %(why)s, expected UTF-8 JSON"),
    _("trace: got %(n)s tokens, expected %(most)s policy tokens"),
    _("bytes: got more than %(n)s, expected at most %(most)s"),
    _("%(kind)s: its bytes hash to %(found)s, expected %(hash)s"),
)
GENERAL = (
    _("%(field)s: got a character that cannot be stored, expected plain text"),
    _("%(field)s: got %(n)s characters, expected %(least)s to %(most)s"),
    _("%(field)s: got %(type)s, expected text"),
)
REFUSALS = (*PLANS, *RUNS, *PEOPLE, *LOGS, *STORE, *GENERAL)

THINGS: Mapping[str, str] = {"plan": _("plan"), "run": _("run"), "execution": _("execution"), "job": _("job")}
FIELDS: Mapping[str, str] = {
    "name": _("name"),
    "reason": _("reason"),
    "key": _("key"),
    "framework": _("framework"),
    "title": _("title"),
    "title_zh": _("Chinese title"),
    "summary": _("summary"),
    "summary_zh": _("Chinese summary"),
}
