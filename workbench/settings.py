"""Settings, and the only reader of the environment. A wrong value stops the start and names its variable.

Variables: WORKBENCH_HOME, WORKBENCH_CACHE_HOME, WORKBENCH_DEBUG, WORKBENCH_SECRET_KEY,
WORKBENCH_ALLOWED_HOSTS, WORKBENCH_TRUSTED_ORIGINS, WORKBENCH_HTTPS, WORKBENCH_LOG_LEVEL, DATABASE_URL,
WORKBENCH_BROKER_URL or REDIS_URL; of accounts WORKBENCH_SIGNUP, WORKBENCH_TRUSTED_PROXIES; of operations
WORKBENCH_LOG_FORMAT, WORKBENCH_METRICS_PUBLIC, WORKBENCH_MIN_FREE_MB; of evidence WORKBENCH_WATCH_ROOTS; of what
leaves the house WORKBENCH_TSA_URL, WORKBENCH_TSA_ROOTS; of the sandbox WORKBENCH_ALLOW_UNISOLATED. All are optional.
WORKBENCH_PROCESS is set by the supervisor alone.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from workbench.broker import embedded_url
from workbench.paths import Home
from workbench.settings_accounts import *  # noqa: F403
from workbench.settings_api import *  # noqa: F403
from workbench.settings_evidence import *  # noqa: F403
from workbench.settings_operations import *  # noqa: F403
from workbench.settings_outward import *  # noqa: F403

BASE_DIR = Path(__file__).resolve().parent.parent
SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # NORMAL may lose a committed row on power loss
    "PRAGMA foreign_keys=ON",
    "PRAGMA recursive_triggers=ON",  # else REPLACE deletes history without firing its trigger
    "PRAGMA mmap_size=268435456",
    "PRAGMA cache_size=-65536",
)


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment for a child, with ``extra`` on top."""
    return {**os.environ, **(extra or {})}


def read_flag(name: str, default: bool) -> bool:
    """A variable that is 0 or 1. Raises ``ImproperlyConfigured`` for anything else."""
    value = os.environ.get(name, "1" if default else "0").strip()
    if value not in ("0", "1"):
        raise ImproperlyConfigured(f"{name}: got {value!r}, expected 0 or 1")
    return value == "1"


def read_list(name: str) -> list[str]:
    """A comma-separated variable; empty where it is not set."""
    return [item.strip() for item in os.environ.get(name, "").split(",") if item.strip()]


def read_folder(name: str, default: Path) -> Path:
    """An absolute folder. Raises ``ImproperlyConfigured`` where the path exists and is none."""
    value = os.environ.get(name, "").strip()
    folder = (Path(value).expanduser() if value else default).resolve()
    if folder.exists() and not folder.is_dir():
        raise ImproperlyConfigured(f"{name}: got {folder}, which is no folder; expected a folder or a path to make one")
    return folder


def user_cache() -> Path:
    """The user's cache folder as the operating system has it."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "workbench"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "workbench"


def sqlite_database(home: Home) -> dict[str, Any]:
    """SQLite in the home: WAL, one writer at a time that waits instead of failing."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(home.database),
        "CONN_MAX_AGE": None,
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE", "init_command": ";".join(SQLITE_PRAGMAS)},
        "TEST": {"NAME": str(home.root / "test.sqlite3")},  # a file, so that threads and children share it
    }


def postgres_database(url: str) -> dict[str, Any]:
    """``postgres://user:password@host:port/name?option=value``; ``host=/folder`` names a unix socket."""
    shown = "DATABASE_URL"
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(f"{shown}: got scheme {parts.scheme!r}, expected postgres or postgresql")
    name = unquote(parts.path.lstrip("/"))
    if not name or "/" in name:
        raise ImproperlyConfigured(f"{shown}: got database name {name!r}, expected one name after the host")
    try:
        port = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"{shown}: {error}, expected a port number") from error
    options: dict[str, Any] = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    host = options.pop("host", unquote(parts.hostname or ""))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(options.pop("port", port or "")),
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }


def broker_from_environment() -> str | None:
    """The configured broker, or None for the embedded one."""
    for name in ("WORKBENCH_BROKER_URL", "REDIS_URL"):
        value = os.environ.get(name, "").strip()
        if not value:
            continue
        if urlsplit(value).scheme not in ("redis", "rediss", "redis+socket"):
            raise ImproperlyConfigured(
                f"{name}: got scheme {urlsplit(value).scheme!r}, expected redis, rediss or redis+socket: "
                "other transports lose a message when a worker dies"
            )
        return value
    return None


def log_level() -> str:
    """Level of the log lines, INFO by default."""
    level = os.environ.get("WORKBENCH_LOG_LEVEL", "INFO").upper()
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise ImproperlyConfigured(f"WORKBENCH_LOG_LEVEL: got {level!r}, expected DEBUG, INFO, WARNING or ERROR")
    return level


def secret_key(home: Home) -> str:
    """The configured key, else the one kept in the home."""
    given = os.environ.get("WORKBENCH_SECRET_KEY", "")
    if given and len(given) < 40:
        raise ImproperlyConfigured(f"WORKBENCH_SECRET_KEY: got {len(given)} characters, expected at least 40")
    if not given and sys.argv[1:2] == ["verify-bundle"]:
        return secrets.token_urlsafe(50)  # it signs nothing and needs no home: nothing is written
    return given or home.ensure_secret_key()


HOME = Home(read_folder("WORKBENCH_HOME", BASE_DIR / ".workbench"))
CACHE_HOME = read_folder("WORKBENCH_CACHE_HOME", user_cache())
BLOB_ROOT = HOME.blobs

DEBUG = read_flag("WORKBENCH_DEBUG", default=False)
# Checked here, so that a wrong value stops the start; the engine's process reads the variable itself.
ALLOW_UNISOLATED = read_flag("WORKBENCH_ALLOW_UNISOLATED", default=False)
SECRET_KEY = secret_key(HOME)
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *read_list("WORKBENCH_ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = read_list("WORKBENCH_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "allauth",
    "allauth.account",
    "workbench",
    "runs",
    "evidence",
    "worker",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "workbench.middleware.ContentSecurityPolicy",
    "workbench.operations.traffic.RequestMetrics",
    "workbench.middleware.Audit",
    "workbench.operations.logging.RequestFields",
    "workbench.operations.limits.BodyLimit",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "workbench.urls"
WSGI_APPLICATION = "workbench.wsgi.application"
ASGI_APPLICATION = "workbench.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

_database_url = os.environ.get("DATABASE_URL", "").strip()
DATABASES = {"default": postgres_database(_database_url) if _database_url else sqlite_database(HOME)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "runs.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"

TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "workbench" / "locale"]

STATIC_URL = "/static/"
STATIC_ROOT = None  # served from their own folders: nothing to collect before the first start
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

# Each directive's sources. No inline script or style, so injected markup cannot run.
CONTENT_SECURITY_POLICY = {
    "default-src": ["'self'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "img-src": ["'self'", "data:", "blob:"],
    "object-src": ["'none'"],
    "base-uri": ["'none'"],
    "form-action": ["'self'"],
    "frame-ancestors": ["'none'"],
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
_https = read_flag("WORKBENCH_HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https
SECURE_HSTS_SECONDS = 31_536_000 if _https else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _https else None

CONFIGURED_BROKER_URL = broker_from_environment()  # None: the supervisor starts the embedded one
CELERY_BROKER_URL = CONFIGURED_BROKER_URL or embedded_url(HOME)
CELERY_BROKER_CONNECTION_RETRY = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# The database row is the truth and the reaper re-queues it; the broker must not start a long task twice.
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 86_400, "socket_timeout": 30, "socket_connect_timeout": 5}
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_SERIALIZER = "json"
CELERY_EVENT_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "prefork"
CELERY_WORKER_CONCURRENCY = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TASK_DEFAULT_QUEUE = "io"
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True

# Who holds a lease. Under the supervisor "<home>/<process>.<start>/<pid>", so that it can end a dead child's leases.
PROCESS_NAME = f"{os.environ.get('WORKBENCH_PROCESS') or socket.gethostname()}/{os.getpid()}"

LOG_LEVEL = log_level()
LOG_COLOUR = not os.environ.get("NO_COLOR")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "workbench.logs.formatter", "form": LOG_FORMAT}},  # noqa: F405
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"level": LOG_LEVEL, "handlers": [], "propagate": True},
        # One line for each message would drown the rest: the reaper alone gets one every two seconds.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.request": {"level": "WARNING"},
    },
}
