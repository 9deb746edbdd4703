"""Each stream's head names the study whose readers may read it."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

PATHS = {
    "study": ("Study", "pk"),
    "plan": ("Plan", "study"),
    "execution": ("Execution", "plan_version__plan__study"),
    "run": ("Run", "plan_version__plan__study"),
}


def name_studies(apps, schema_editor):
    """Fill ``study`` of the heads that were there before; a stream of no study keeps None."""
    heads = apps.get_model("runs", "StreamHead").objects.using(schema_editor.connection.alias)
    for kind, (name, path) in PATHS.items():
        model = apps.get_model("runs", name).objects.using(schema_editor.connection.alias)
        studies = dict(model.filter(**{f"{path}__isnull": False}).values_list("uid", path))
        found = []
        for head in heads.filter(stream__startswith=f"{kind}:"):
            try:
                head.study_id = studies.get(uuid.UUID(head.stream.partition(":")[2]))
            except ValueError:
                continue
            found.append(head)
        heads.bulk_update(found, ["study"], batch_size=300)


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0004_metric_store"),
    ]

    operations = [
        migrations.AddField(
            model_name="streamhead",
            name="study",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.study"
            ),
        ),
        migrations.RunPython(name_studies, migrations.RunPython.noop),
    ]
