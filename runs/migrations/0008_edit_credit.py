"""Credit from edits: what the update added to a trajectory's advantage, as it recorded it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0007_trials"),
    ]

    operations = [
        migrations.AddField(model_name="trajectorycredit", name="edit", field=models.JSONField(null=True)),
    ]
