"""Bundled studies: plan documents as data, one file a study with its scales."""
