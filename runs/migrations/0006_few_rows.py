"""Indexes that hold few rows each: turns that could not be parsed, and repeated calls."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0005_stream_study"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("parse_error__isnull", False)), fields=["trajectory"], name="turn_unparsed"
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(condition=models.Q(("is_repeat", True)), fields=["turn"], name="call_repeated"),
        ),
    ]
