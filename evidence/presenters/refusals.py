"""What evidence refuses and why a mark was made, as patterns that pages read in the reader's language.

The words are stored and answered by the API as they were made, in English; ``evidence.presenters.troubles`` reads the
values out of them. A hole named ``said`` holds a message of its own, ``field`` and ``kind`` a word of ``WORDS``; what
people wrote stands as they wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext_noop as _

# Reasons of marks and notes of their resolutions.
REASONS = (
    _("superseded: %(said)s"),
    _("drifted: %(said)s"),
    _("missing: %(said)s"),
    _("the watched file cannot be read: %(said)s"),
    _("the stored value again"),
    _("the bytes are those of the recorded hash again"),
)
CHANGES: Mapping[str, str] = {
    "value": _("value %(was)s is now %(now)s"),
    "unit": _("unit %(was)s is now %(now)s"),
    "kind": _("kind %(was)s is now %(now)s"),
    "origin": _("origin %(was)s is now %(now)s"),
}
# Whose part somebody has in a claim (``evidence.parts.WORDS``); a longer one stands before what it begins with.
PARTS = (
    _("version %(number)s of claim %(key)s"),
    _("a link of claim %(key)s"),
    _("a withdrawal of a link of claim %(key)s"),
    _("the binding of figure %(key)s, from which another is derived"),
    _("the binding of figure %(key)s"),
    _("excerpt %(key)s"),
)
REFUSALS = (
    _(
        "by: got %(name)s, who wrote %(said)s, expected somebody who wrote none of what the claim rests on; "
        "ask a reviewer of another family"
    ),
    _("by: got %(name)s, who wrote this review, expected an author of the claim; to change your mind, review again"),
    _("item: got %(item)s, which %(name)s holds until %(until)s, expected one that nobody else holds; take another"),
    _("item: got '%(item)s', expected KIND:UID with a kind out of %(kinds)s"),
    _("looked_at: got nothing, expected at least one of %(names)s; say what you looked at"),
    _("looked_at: got '%(name)s', expected some of %(names)s"),
    _("claim: got %(key)s, which has no words yet, expected a claim with a version"),
    _("claim: got %(key)s, which has no words, expected a claim with a version"),
    _("claim: got %(key)s, which is withdrawn, expected a claim that is still made"),
    _("link: got %(uid)s, expected a link of claim %(key)s"),
    _(
        "link: got %(uid)s, which is withdrawn, expected a link that stands or one that was reviewed, whose "
        "withdrawal is judged"
    ),
    _("link: got %(uid)s, which is withdrawn already, expected one that stands"),
    _(
        "review: got one of verdict %(verdict)s that is %(fate)s, expected a dispute or a request for "
        "evidence that is still open"
    ),
    _("claim_version: got number %(n)s, expected one after number %(seen)s, which the review has seen"),
    _("claim_version: got '%(number)s', expected the number of a version of this claim"),
    _("claim_version: got %(version)s, expected a version of claim %(key)s"),
    _("minutes: got %(n)s, expected 1 to %(most)s"),
    _("base: got version %(seen)s, expected version %(now)s, which %(name)s wrote since: %(changes)s"),
    _("base: got %(n)s, expected the number of a version, 1 to %(most)s"),
    _("status: got %(status)s, which it is already, expected another one"),
    _(
        "status: got %(status)s, expected at most %(cap)s: %(why)s What lifts that: %(lifts)s. A status is "
        "lowered by hand, never raised above its cap"
    ),
    _("evidence: got %(got)s, expected an excerpt or a figure, and one of them"),
    _("evidence: got %(key)s of another study, expected one of %(study)s"),
    _("evidence: got %(key)s, linked as %(relation)s already, expected other evidence"),
    _("figure: got %(key)s, which is bound to nothing, expected a figure with a binding"),
    _(
        "figure: got %(key)s of kind %(kind)s, expected an effect: no other figure carries a claim of kind "
        "%(of)s; link it as %(relation)s"
    ),
    _(
        "excerpt: got %(key)s in a version of %(path)s that was superseded, expected one in the newest "
        "version; make the excerpt there, or link this one as %(relation)s"
    ),
    _(
        "how: got rebound, but the %(kind)s still rests on what changed; bind it to current evidence, or "
        "confirm it with a note"
    ),
    _(
        "how: got confirmed, but the %(kind)s rests on what does not compute as shown (%(said)s), expected "
        "rebound: bind the figure to what it is now, and words to the figure; a confirmation cannot do it"
    ),
    _("how: got '%(how)s', expected rebound or confirmed; bytes that are back heal by themselves"),
    _("mark: got %(n)s, expected 1 to %(most)s; choose what you confirm"),
    _("mark: got %(uid)s, which is settled, expected an open one"),
    _("actor: got the service %(name)s, expected a person; only people confirm"),
    _("version: got %(version)s, whose bytes are not here now (%(why)s); expected bytes to search"),
    _("version: got a source of another study, expected one of %(study)s"),
    _("excerpt: got %(n)s characters, expected 1 to %(most)s; choose a smaller place"),
    _(
        "excerpt: got one that %(edge)s within a word or number ('%(before)s' | '%(after)s'), expected whole "
        "ones: move its edge to the next space"
    ),
    _(
        "text: got %(n)s characters, expected 1 to %(most)s: the bytes of this source are not held, so the "
        "quotation has to be transcribed"
    ),
    _("text: got '%(text)s', expected what stands there: '%(found)s'"),
    _("selector.exact: got another text than the transcription, expected the same"),
    _("key: got '%(key)s', which names another excerpt, expected a new one"),
    _("quote.exact: got nothing, expected the quoted text"),
    _("selector.%(name)s: got nothing, expected a text"),
    _("reason: got '%(text)s', expected why these bytes replace version %(n)s (%(hash)s): they differ"),
    _("sha256: got '%(text)s', expected 64 lower-case hexadecimal digits"),
    _("sha256: got nothing, expected the recorded hash of bytes that are not given"),
    _("sha256: got %(hash)s, expected %(found)s, the hash of the bytes that were given"),
    _("size: got %(n)s, expected %(found)s, the length of the bytes that were given"),
    _("bytes: got %(n)s, expected at most %(most)s"),
    _("reference: got %(reference)s, which another source of this study has, expected a free one"),
    _("reference: got '%(text)s', expected a letter and up to 31 letters, digits, dots, dashes"),
    _("commit: got '%(text)s', expected the full id of a commit, or nothing"),
    _("commit: got '%(text)s', expected a commit id, a branch or a tag"),
    _("commit: got '%(text)s', expected one commit of this repository"),
    _("path: got '%(path)s', expected one outside %(folder)s/, which holds our own records"),
    _("path: got '%(path)s', which is a source of origin %(origin)s, expected a free path"),
    _("path: got '%(path)s', whose file is gone, expected a file to take in"),
    _("path: got '%(path)s', which is a %(kind)s of that commit, expected a file"),
    _("path: got '%(path)s' of more than %(n)s bytes, expected at most %(most)s"),
    _("path: got '%(path)s' of %(n)s bytes, expected at most %(most)s"),
    _("path: got '%(path)s', expected no invisible or private character"),
    _("path: got '%(path)s', expected no space at either end of a part"),
    _("path: got '%(path)s', expected a path that is there below %(root)s"),
    _("path: got '%(path)s', which leads out of %(root)s, expected a path within it"),
    _("path: got '%(path)s', expected a folder below %(root)s"),
    _("path: got '%(path)s', expected a file that can be read (%(why)s)"),
    _("path: got '%(path)s', expected a regular file"),
    _("path: got %(n)s characters, expected at most %(most)s"),
    _("root: got '%(root)s', expected one of %(known)s"),
    _("root: got %(root)s, whose folder is not there, expected a folder"),
    _("form: got %(form)s, expected binary: the bytes are not of that form"),
    _("file: got %(n)s bytes, expected at most %(most)s"),
    _("file: got none, expected a file, or the recorded hash of bytes that are elsewhere"),
    _("cutoff: got '%(text)s', expected a day such as %(day)s"),
    _("origin: got %(origin)s, expected a watched file; upload the new bytes instead"),
    _("folder: got %(folder)s, which is not watched, expected a watched one"),
    _("git: got no such program on this machine, expected git"),
    _("git: got no answer within %(n)s s, expected one; nothing was changed"),
    _("git: got '%(text)s' from %(what)s, expected a commit and a file of this repository"),
    _("repository_root: got '%(path)s', expected a folder below %(root)s"),
    _("repository_root: got '%(path)s', expected a folder"),
    _("title_en: got nothing, expected what the figure says"),
    _("digits: got %(digits)s, expected a whole number from 0 to %(most)s"),
    _("digits: got %(digits)s, with which %(value)s would show as 0, expected more"),
    _("origin: got imported for a binding of type %(type)s, expected native: it is ours"),
    _("kind: got %(kind)s for a registered endpoint, expected effect"),
    _(
        "kind: got effect, but %(name)s (%(key)s) is a %(kind)s figure; a figure of another kind never fills "
        "an effect cell: bind it as what it is, or use figures of a closed evaluation"
    ),
    _(
        "origin: got native, but %(name)s (%(key)s) is imported, expected imported; what is derived from "
        "other people's numbers is theirs"
    ),
    _(
        "kind: got effect for a binding of type %(type)s, expected endpoint or cell_rate of a closed "
        "execution; bind it as another kind, or as pending until the plan's evaluation is closed"
    ),
    _(
        "style: got ratio for a value without numerator and denominator, expected plain or percent; a ratio "
        "is bound as a number n/N, a derivation a / b, or a cell_rate"
    ),
    _("unit: got %(n)s characters, expected at most %(most)s; give operands shorter units"),
    _("binding: got a rate of more than 100 digits, expected a shorter one"),
    _("plan_version: got one of %(got)s, expected one of %(plan)s"),
    _("endpoint: got '%(endpoint)s', expected %(named)s, which the binding names"),
    _("reason: got nothing, expected why %(key)s is bound anew; the old version stays readable"),
    _(
        "kind: got %(kind)s for %(key)s, on which the effect figures %(keys)s rest, expected effect; bind "
        "those anew first"
    ),
    _(
        "origin: got imported for %(key)s, on which the native figures %(keys)s rest, expected native; bind "
        "those anew first"
    ),
    _(
        "base: got %(base)s, expected %(n)s: another version was saved meanwhile; look at the difference, "
        "take over what you need, and save again"
    ),
    _("reason: got %(n)s characters, expected 1 to %(most)s: why version %(version)s is replaced"),
    _("document: got a text that is no working document of the editor, expected one; reload it"),
    _("part: got '%(part)s' of version '%(version)s', expected a part of the page; reload it"),
    _("manuscript_sha256: got nothing, expected the hash of the manuscript: a contract on results binds one"),
    _(
        "manuscript_sha256: got %(hash)s, expected the hash of a source of this study; add the manuscript as "
        "a source first"
    ),
    _("manuscript_sha256: got '%(hash)s', expected 64 hexadecimal characters"),
    _("assurance: got '%(assurance)s', expected %(first)s or %(second)s"),
    _("language: got '%(language)s', expected en or zh"),
    _("day: got %(n)s lines on %(day)s, expected at most %(most)s"),
    _("plan_version: got %(version)s, whose execution is not closed, expected a closed one"),
    _("size: got %(n)s, expected 0 to %(most)s"),
    _("day: got %(day)s, on which no receipt of %(study)s was written, expected another day"),
    _("day: got %(day)s, expected one up to today, %(today)s (UTC)"),
    _("day: got '%(day)s', expected a day such as %(example)s"),
    _("%(field)s: got '%(text)s', expected 1 to 100 letters, digits, dots, dashes and underscores"),
    _("%(field)s: got '%(text)s', expected a text of at most %(most)s characters"),
    _("%(field)s: got %(n)s characters, expected at most %(most)s without U+0000"),
    _("%(field)s: got %(n)s, expected text of at most %(most)s without U+0000"),
    _("%(field)s: got %(n)s characters, expected %(least)s to %(most)s"),
    _("%(field)s: got %(n)s characters, expected at most %(most)s"),
    _("%(field)s: got '%(text)s', expected one of %(known)s"),
)
WORDS: Mapping[str, str] = {
    "reason": _("reason"),
    "note": _("note"),
    "text": _("text"),
    "verdict": _("verdict"),
    "status": _("status"),
    "relation": _("relation"),
    "kind": _("kind"),
    "origin": _("origin"),
    "style": _("style"),
    "form": _("form"),
    "language": _("language"),
    "key": _("key"),
    "title_en": _("English title"),
    "title_zh": _("Chinese title"),
    "reach_en": _("English reach"),
    "reach_zh": _("Chinese reach"),
    "denominator_en": _("English denominator"),
    "denominator_zh": _("Chinese denominator"),
    "scope_en": _("English scope"),
    "scope_zh": _("Chinese scope"),
    "unit": _("unit"),
    "figure": _("figure"),
    "claim": _("claim"),
    "section": _("section"),
    "name": _("name"),
}
