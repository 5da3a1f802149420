"""Builds the C module against the installed ascendsched, whose sources are not needed."""

from setuptools import Extension, setup

import ascendsched

include = ascendsched.get_include()
setup(ext_modules=[Extension("toy_device.device", ["src/toy_device/device.c"], include_dirs=[include])])
