"""What the validator of plans got or expected, as patterns that pages read in the reader's language."""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

WORDINGS = (
    # the text
    _("at most %(n)s characters, none of them a control character"),
    _("%(n)s characters: %(shown)s"),
    _("%(n)s characters"),
    _("%(n)s items"),
    _("%(n)s rows a batch"),
    _("a number of thousands of digits"),
    _("at most %(n)s digits"),
    _("a text key"),
    _("the key '%(key)s' twice"),
    _("a tag (!!) whose text does not fit it"),
    _("the character U+%(code)s"),
    _("text that can be stored"),
    _("values that have a canonical form"),
    # names
    _("letters, digits, dash or underscore, at most 64, and not the word new"),
    _("letters, digits, dot, dash or underscore, at most 64"),
    _("%(name)s, the study that the plan is saved in"),
    _("%(name)s, the name that the plan is saved under"),
    _("a repeated id"),
    _("each id once"),
    # sections against each other
    _("an object under one of %(names)s"),
    _("at least one profile, since STRESS is evaluated"),
    _("at most runtime.shard_rows"),
    _("at most rollout.max_decisions (%(n)s), or null for the same"),
    _("at most rollout.group_size: a batch may have one group with signal alone"),
    _("a section, since arm %(arm)s needs it"),
    _("a section, since trials.pilot tries its groups"),
    _("a section"),
    _("true, an arm with credit from edits, or every_arm: nothing would be tried otherwise"),
    _("true: replays and repeats are made of preflight groups"),
    _("null: environment %(id)s keeps no artefacts that a verifier could try"),
    _("a change"),
    _("the plan's: every checkpoint faces one schedule"),
    _("group_size x groups_per_batch of at most 32"),
    _("a length, since aggregation is fixed_length"),
    _("truncated sampling"),
    _("top_p 1 and top_k 0: truncation biases the ratio"),
    _("1.0: the policy that is trained is the policy that samples"),
    _("another arm of the plan, without a gate of its own"),
    _("a gate exactly when the role is gated"),
    _("at most %(n)s tasks of split %(split)s"),
    # endpoints
    _("non-empty text"),
    _("null or an integer from 1"),
    _("null or a number >= 0"),
    _("null or [low, high] with low < high"),
    _("increase | decrease where a margin stands"),
    _("a level between 0 and 1"),
    _("distinct arm names"),
    _("two arms, baseline first, for a pair"),
    _("arms of the plan: %(names)s"),
    _("at most %(n)s"),
)
