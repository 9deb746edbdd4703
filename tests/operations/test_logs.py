"""Log lines: what they belong to, as JSON, and that no secret stands in them."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.models import Job, User
from tests.runs.scripted import Lab
from tests.runs.test_advance import ALONE
from tests.workbench.processes import manage
from workbench.logcontext import current_fields, log_fields
from workbench.logs import JsonFormatter, LineFormatter, formatter, redact

TOKEN = "wb_Ab3dEf9h_" + "x" * 43
SECRETS = [
    (f"Authorization: Bearer {TOKEN}", "x" * 43),
    ("{'Authorization': 'Bearer abcdefgh12345678'}", "abcdefgh12345678"),
    ("Authorization: Basic YWRtaW46aHVudGVyMg==", "YWRtaW46aHVudGVyMg"),
    ("Cookie: sessionid=s3ss10nvalue; csrftoken=t0kenvalue; theme=dark", "s3ss10nvalue"),
    ("Cookie: sessionid=s3ss10nvalue; csrftoken=t0kenvalue; theme=dark", "t0kenvalue"),
    ("'HTTP_COOKIE': 'other=plainvalue'", "plainvalue"),
    ("Set-Cookie: anything=gr33n; Path=/", "gr33n"),
    (f"called with {TOKEN} twice {TOKEN}", "x" * 43),
    ("DATABASE_URL=postgres://workbench:hunter2@db.example/wb", "hunter2"),
    ("redis://:hunter2@127.0.0.1:6379/0", "hunter2"),
    ('{"password": "hunter2", "password1": "hunter3"}', "hunter3"),
    ("username=a&password=hunter2&next=/", "hunter2"),
    ("secret_key = 'v3ry-s3cret'", "v3ry-s3cret"),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_are_left_out(text: str, secret: str, form: str) -> None:
    """In the message, in its arguments, in a traceback, in a field."""
    record = logging.LogRecord("x", logging.INFO, "f", 1, "got %s", (text,), None)
    assert secret not in formatter(form).format(record) and "got " in formatter(form).format(record)
    try:
        raise ValueError(text)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "broken", (), sys.exc_info())
    line = formatter(form).format(record)
    assert secret not in line and "ValueError" in line
    with log_fields(study=text):
        assert secret not in JsonFormatter().format(logging.LogRecord("x", logging.INFO, "f", 1, "m", (), None))


@pytest.mark.parametrize(
    "text",
    [
        "2 basic tests passed",
        "cookies are off",
        "the password field is required",
        "https://example.org/a@b",
        "bearer of news",
    ],
)
def test_plain_words_stay(text: str) -> None:
    assert redact(text) == text


def test_one_json_object_on_one_line() -> None:
    """Time with its zone; line breaks, quotes and lone surrogates stay inside the object."""
    record = logging.LogRecord("runs.jobs", logging.WARNING, "f", 1, 'a\n"b" \ud800 \u2028 中', (), None)
    with log_fields(request_id="r1", job="j1", attempt=2, user=None):
        line = JsonFormatter().format(record)
    assert "\n" not in line and line.isascii()
    value = json.loads(line)
    assert value.pop("time").endswith("+00:00")
    assert value == {
        "level": "WARNING", "logger": "runs.jobs", "message": 'a\n"b" \ud800 \u2028 中',
        "request_id": "r1", "job": "j1", "attempt": 2,
    }  # fmt: skip
    assert isinstance(formatter("text"), LineFormatter)


def test_fields_nest_end_and_never_break_a_line() -> None:
    """Inner ones hide outer ones until they end; one that cannot be told is left out; an unknown name is refused."""

    def broken() -> str:
        raise RuntimeError("database away")

    with log_fields(run="outer", user=lambda: "ann", study=broken):
        with log_fields(run="inner", job="j"):
            assert current_fields() == {"user": "ann", "run": "inner", "job": "j"}
        assert current_fields() == {"user": "ann", "run": "outer"}
    assert current_fields() == {}
    with pytest.raises(ValueError, match=r"log_fields: got \['colour'\]"), log_fields(colour="red"):
        pass


@pytest.mark.django_db
def test_a_request_names_itself_its_user_and_what_it_is_about(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """A 404 that Django logs carries the id that the answer carries."""
    execution = lab.start(**ALONE)
    run = execution.runs.get()
    seen: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(json.loads(JsonFormatter().format(record)))

    handler, logger = Keep(), logging.getLogger("django.request")
    logger.addHandler(handler)
    try:
        client = Client(headers={"host": "localhost"})
        client.force_login(User.objects.create_user("ann", password="x" * 12))
        answer = client.get(f"/runs/{'0' * 8}-0000-0000-0000-{'0' * 12}/")
        assert answer.status_code == 404
    finally:
        logger.removeHandler(handler)
    assert seen[0]["request_id"] == answer["X-Request-ID"] and seen[0]["user"] == "ann"
    assert seen[0]["run"] == "00000000-0000-0000-0000-000000000000" and run.uid
    assert current_fields() == {}


@pytest.mark.django_db
def test_a_job_names_itself_its_run_and_its_attempt(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the work of a job the fields are its own; afterwards none are left."""
    execution = lab.start(**ALONE)
    seen: list[dict[str, Any]] = []
    from worker import lifecycle

    def handler(job: Job) -> None:
        seen.append(current_fields())
        raise RuntimeError("broken on purpose")

    monkeypatch.setitem(lifecycle._HANDLERS, "collect_shard", handler)
    key = lab.step(execution, only="collect")
    job = Job.objects.get(key=key)
    assert seen == [
        {"run": str(job.run.uid), "execution": str(execution.uid), "job": str(job.uid), "attempt": 1}
    ] and current_fields() == {}  # fmt: skip
    assert job.state == "errored"


@pytest.mark.parametrize(("form", "status"), [("json", 0), ("xml", 1)])
def test_the_variable_chooses_the_form(tmp_path: Path, form: str, status: int) -> None:
    """A wrong value stops the start and names the variable."""
    code = "import logging, django; django.setup(); logging.getLogger('x').warning('password=hunter2')"
    done = manage(tmp_path, "shell", "-v", "0", "-c", code, WORKBENCH_LOG_FORMAT=form)
    assert done.returncode == status
    if status:
        assert "WORKBENCH_LOG_FORMAT: got 'xml', expected text or json" in done.stderr
    else:
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        assert lines[-1]["message"] == "password=***" and lines[-1]["logger"] == "x"
