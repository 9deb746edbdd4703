"""Runs one test of a file: python run_tests.py file.py::name."""

import runpy
import sys

path, _, name = sys.argv[1].partition("::")
runpy.run_path(path)[name]()
