"""The MLflow-compatible tracking endpoint: unchanged clients log here. An experiment is a study.

Light views without the REST framework: a trainer calls these with every step.
"""
