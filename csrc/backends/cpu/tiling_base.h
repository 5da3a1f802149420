// What the tiling functions of the CPU share: creation, errors, attributes and host values read without allocation.
#pragma once

#include <memory>
#include <string>

#include "kernel/kernel.h"

namespace asc::cpu {

// Base of the tilings that own nothing outside themselves.
template <typename Derived>
struct TilingOf : Tiling {
  size_t bytes() const override { return sizeof(Derived); }
};

template <typename T>
std::shared_ptr<T> create_tiling(LaunchFn launch, const char* implementation) {
  auto t = std::make_shared<T>();
  t->launch = launch;
  t->implementation = implementation;
  return t;
}

// Throws GraphError("[tiling] <op> '<node>': <what>").
[[noreturn]] void fail_tiling(const TilingContext& ctx, const std::string& what);

// A negative axis counts from the back. Throws GraphError out of range.
int checked_axis(const TilingContext& ctx, int64_t axis, int rank);

// Copies an int32 or int64 host value to `out`; returns the count. Throws GraphError for other types, and for more
// than `capacity` elements.
int read_ints(const TilingContext& ctx, int input, int64_t* out, int capacity);

// The single element of an int32 or int64 host value.
int64_t read_int(const TilingContext& ctx, int input);

// Element count without the overflow checks of Shape::num_elements, which infer_shape has already made.
inline int64_t count_of(const Shape& s) { return s.span_of(0, s.rank()); }

// Threads that a launch of so many arithmetic operations should use: forking and joining costs tens of microseconds
// where the other threads have gone to sleep, so only large work is shared out.
int threads_for(const TilingContext& ctx, double operations);

// Launch of tilings with nothing to do (an output without elements).
Status launch_nothing(const Task& task, void* const* slots, Worker& worker);
std::shared_ptr<const Tiling> create_empty_tiling();

}  // namespace asc::cpu
