"""Settings of the REST API."""

from __future__ import annotations

# Requests per minute of one user, or of one address; ``log``: of trainers, which may send each value by itself.
API_RATES = {"read": 6000, "change": 600, "log": 30_000}
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["runs.api.parsing.StrictJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["runs.api.authentication.BearerToken", "runs.api.authentication.Session"],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_THROTTLE_CLASSES": ["runs.api.throttling.ReadThrottle", "runs.api.throttling.ChangeThrottle"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "runs.api.negotiation.Negotiation",
    "URL_FORMAT_OVERRIDE": None,
    "DEFAULT_SCHEMA_CLASS": "runs.api.schema.ApiSchema",
    "EXCEPTION_HANDLER": "runs.api.problems.handle",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "DATETIME_FORMAT": "iso-8601",
    "COERCE_DECIMAL_TO_STRING": True,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Workbench",
    "DESCRIPTION": "Pre-registered reinforcement-learning studies: plans, runs, captures, receipts.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "ClaimKindEnum": "evidence.models.ClaimVersion.KINDS",
        "ClaimStatusEnum": "evidence.actions.claims.SETTABLE",
        "ContractAssuranceEnum": ["draft", "results"],
        "ContractStateEnum": "evidence.api.notes_serializers.STATUSES",
        "ExcerptFormEnum": ["quote", "pointer", "cell"],
        "FigureKindEnum": "evidence.models.FigureVersion.KINDS",
        "FigureOriginEnum": "evidence.models.FigureVersion.ORIGINS",
        "FigureStyleEnum": "evidence.models.FigureVersion.STYLES",
        "LinkRelationEnum": "evidence.models.Link.RELATIONS",
        "QueueKindEnum": ["link", "source", "figure", "claim"],
        "ReviewLookedAtEnum": "evidence.models.Review.LOOKED",
        "ReviewVerdictEnum": "evidence.models.Review.VERDICTS",
        "SettlementEnum": ["confirmed", "rebound"],
    },
    "AUTHENTICATION_WHITELIST": [],
    "APPEND_COMPONENTS": {
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": "an API token, wb_…"}}
    },
    "SECURITY": [{"bearer": []}, {}],
}
