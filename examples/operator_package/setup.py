"""Builds the Cython module against the installed ascendsched, whose sources are not needed."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import ascendsched

include = ascendsched.get_include()
kernels = Extension("gauss_ops.kernels", ["src/gauss_ops/kernels.pyx"], include_dirs=[include])
setup(ext_modules=cythonize([kernels], include_path=[include], language_level=3))
