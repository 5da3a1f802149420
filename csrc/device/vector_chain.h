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
  void add_record(Point& point) override { add_step({0, &point, nullptr}); }
  void add_wait(const Point& point) override { add_step({0, nullptr, &point}); }
  void load() override {
    tasks_.shrink_to_fit();
    steps_.shrink_to_fit();
    is_loaded_ = true;
  }
  size_t task_count() const override { return tasks_.size(); }
  size_t bytes() const override {
    return sizeof(*this) + tasks_.capacity() * sizeof(Task) + steps_.capacity() * sizeof(Step);
  }

  // So many further tasks, then a point.
  struct Step {
    uint32_t task_count = 0;
    Point* record = nullptr;  // one of the two
    const Point* wait = nullptr;
  };

  bool is_loaded() const { return is_loaded_; }
  ArrayView<const Task> tasks() const { return tasks_; }
  // Tasks after the last step follow it. Empty: tasks alone.
  ArrayView<const Step> steps() const { return steps_; }

 private:
  void add_step(Step step) {
    if (is_loaded_) throw DeviceError("[chain.add_point] the chain is loaded; build a new one");
    step.task_count = static_cast<uint32_t>(tasks_.size() - stepped_);
    stepped_ = tasks_.size();
    steps_.push_back(step);
  }

  std::vector<Task> tasks_;
  std::vector<Step> steps_;
  size_t stepped_ = 0;  // tasks before the last step
  bool is_loaded_ = false;
};

}  // namespace asc
