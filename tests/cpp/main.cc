// Entry point of the C++ tests; tests/cpp/build.py links every test_*.cc with it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
