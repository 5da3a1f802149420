// A task chain in host memory: the loaded form of all devices whose executor is a CPU thread.
#pragma once

#include <cstddef>
#include <vector>

#include "base/array_view.h"
#include "base/error.h"
#include "device/device.h"

namespace asc {

class VectorChain final : public TaskChain {
 public:
  void add_task(const Task& task) override {
    if (is_loaded_) throw DeviceError("[chain.add_task] the chain is loaded; build a new one");
    tasks_.push_back(task);
  }
  void load() override {
    tasks_.shrink_to_fit();
    is_loaded_ = true;
  }
  size_t task_count() const override { return tasks_.size(); }
  size_t bytes() const override { return sizeof(*this) + tasks_.capacity() * sizeof(Task); }

  bool is_loaded() const { return is_loaded_; }
  ArrayView<const Task> tasks() const { return tasks_; }

 private:
  std::vector<Task> tasks_;
  bool is_loaded_ = false;
};

}  // namespace asc
