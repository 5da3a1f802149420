// oneDNN behind a small surface: the engine, thread counts, and primitives that any number of threads may execute at
// once. Compiled only where oneDNN is present (ASC_HAVE_ONEDNN).
#pragma once

#if ASC_HAVE_ONEDNN

#include <atomic>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "device/task.h"

namespace asc::cpu {

// The CPU engine of the process; never destroyed, since executors may outlive static destruction.
const dnnl::engine& onednn_engine();

// Sets OpenMP's thread count of the calling thread while it lives: a primitive is created for the thread count that
// will execute it.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(int threads);
  ~OpenMpThreads();
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  int saved_;
};

// A compiled primitive and the memory objects of its arguments. Memory objects carry the addresses, so each execution
// takes a set of its own; one set is kept, further ones are made while several threads execute side by side.
class OneDnnPrimitive {
 public:
  struct Argument {
    int name;  // DNNL_ARG_…
    dnnl::memory::desc desc;
  };

  // Executions use the number of OpenMP threads that the calling thread has now. Throws dnnl::error.
  OneDnnPrimitive(const dnnl::primitive& primitive, std::vector<Argument> arguments);
  ~OneDnnPrimitive();
  OneDnnPrimitive(const OneDnnPrimitive&) = delete;
  OneDnnPrimitive& operator=(const OneDnnPrimitive&) = delete;

  // `data`: one address per argument, in their order. Never throws.
  Status execute(void* const* data, Worker& worker) const;
  // oneDNN does not tell the size of its code: an estimate.
  size_t bytes() const { return size_t{32} << 10; }

 private:
  struct Call;
  std::unique_ptr<Call> create_call() const;

  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  const int threads_;                         // of every execution
  mutable std::atomic<Call*> idle_{nullptr};  // owned
};

// A reorder from one layout to another. Throws dnnl::error.
std::unique_ptr<OneDnnPrimitive> create_reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

// Reorders once, on the calling thread, for packing. Throws dnnl::error.
void reorder_now(const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to, void* target);

// Equal for equal layouts; never 0.
uint64_t layout_hash(const dnnl::memory::desc& desc);

// Whether the implementation is the library's slow reference code.
bool is_reference(const dnnl::primitive_desc_base& primitive);

}  // namespace asc::cpu

#endif
