from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0002_access"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="group",
            index=models.Index(fields=["record_sha256"], name="group_by_record"),
        ),
        migrations.AddIndex(
            model_name="group",
            index=models.Index(fields=["mean"], name="group_by_mean"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["finished_at"], name="job_by_finish"),
        ),
        migrations.AddIndex(
            model_name="runhead",
            index=models.Index(fields=["updated_at"], name="run_head_by_change"),
        ),
        migrations.AddIndex(
            model_name="trajectory",
            index=models.Index(fields=["fatal_confirmed", "group"], name="trajectory_by_confirmed"),
        ),
        migrations.AddIndex(
            model_name="trajectory",
            index=models.Index(fields=["reward_total"], name="trajectory_by_reward"),
        ),
        migrations.AddIndex(
            model_name="trajectory",
            index=models.Index(fields=["advantage"], name="trajectory_by_advantage"),
        ),
        migrations.AddIndex(
            model_name="trajectory",
            index=models.Index(fields=["generated_tokens"], name="trajectory_by_tokens"),
        ),
        migrations.AddIndex(
            model_name="trajectorycredit",
            index=models.Index(fields=["masked_tokens", "trajectory"], name="credit_by_masked"),
        ),
    ]
