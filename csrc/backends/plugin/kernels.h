// Kernels of devices that packages bring: their tilings, and tasks as such devices see them.
#pragma once

#include <ascendsched/device.h>

#include <memory>
#include <vector>

#include "kernel/kernel.h"

namespace asc {

// What a plug-in's tiling function made, with the operands' shapes and types.
struct PluginTiling final : Tiling {
  ~PluginTiling() override;
  size_t bytes() const override { return sizeof(*this) + operands.capacity() * sizeof(asc_tensor); }

  const asc_kernel* kernel = nullptr;
  void* data = nullptr;              // the plug-in's own
  std::vector<asc_tensor> operands;  // inputs, then outputs, without data
  int output_count = 0;
  bool has_extents = false;  // the operator's output shapes depend on data
};

// The tiling function of all kernels of plug-ins; which one it is, TilingContext::kernel_data says. Throws
// UnsupportedError where the plug-in refuses.
std::shared_ptr<const Tiling> make_plugin_tiling(const TilingContext& ctx);

asc_task make_plugin_task(const Task& task);

// Copies a tensor of any type: for devices without a kernel for Identity, since copies are needed for results that
// other nodes read.
const asc_kernel& identity_kernel();

// Runs a task on the calling thread. Exceptions of the kernel are failures, too.
Status run_plugin_task(const asc_task& task, void* const* table, std::string& error) noexcept;

Status status_of(int status);      // of an ASC_ status that is not ASC_OK
DTypeSet types_of(uint32_t bits);  // asc_kernel::types

}  // namespace asc
