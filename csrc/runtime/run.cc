#include "runtime/run.h"

#include <algorithm>
#include <cstring>

#include "runtime/executable.h"
#include "runtime/interrupt.h"

namespace asc {

std::exception_ptr kernel_error(const Event& event, const Executable& executable) {
  if (event.failed_node() == Event::kNoNode) return std::make_exception_ptr(DeviceError(event.error()));
  const NodeInfo& node = executable.node(event.failed_node());
  const std::string text = "[launch] " + node.op + " '" + node.name + "': " + event.error();
  switch (event.status()) {
    case Status::kOutOfRange:
    case Status::kInvalidValue:
      return std::make_exception_ptr(GraphError(text));
    case Status::kOutOfMemory:
      return std::make_exception_ptr(OutOfMemoryError(text));
    default:
      return std::make_exception_ptr(DeviceError(text));
  }
}

Run::Run(std::shared_ptr<Executable> executable, const std::vector<TensorView>& bound)
    : executable_(std::move(executable)) {
  results_.resize(executable_->plan().outputs.size());
  for (size_t i = 0; i < bound.size(); ++i) {
    if (bound[i].dtype == DType::kUndefined) continue;
    results_[i].view = bound[i];
    results_[i].is_bound = true;
  }
}

Run::~Run() { complete(); }

void Run::complete() noexcept {
  if (!is_launched_) return;
  try {
    event_.wait(-1);
    settle();
  } catch (const Error&) {
    // A child process after fork: the buffers belong to threads that do not exist here.
  }
}

void* Run::place(size_t i, size_t bytes) {
  Result& r = results_[i];
  if (!r.is_bound) {
    check_limit(i, bytes);
    r.fresh = std::make_shared<Buffer>(bytes);
    fresh_bytes_ += bytes;
    r.view.data = r.fresh->data();
  } else if (bytes != static_cast<size_t>(r.view.shape.num_elements()) * size_of(r.view.dtype)) {
    throw GraphError("[bind] output '" + output(i).name + "': bound array has shape " + r.view.shape.text() +
                     ", the result takes " + std::to_string(bytes) + " bytes; bind an array of the result's shape");
  }
  if (bytes && !executable_->device_info().computes) std::memset(r.view.data, 0, bytes);
  return r.view.data;
}

// Fresh results are the caller's, but a run that asks for more than there is must fail before it touches the memory.
void Run::check_limit(size_t i, size_t bytes) const {
  const size_t limit = executable_->device_info().memory_limit_bytes;
  if (limit == 0 || (bytes <= limit && fresh_bytes_ <= limit - bytes)) return;
  throw OutOfMemoryError("[run] output '" + output(i).name + "': asked " + std::to_string(bytes) +
                         " bytes, other results take " + std::to_string(fresh_bytes_) + " bytes, limit " +
                         std::to_string(limit) + " bytes; raise memory_limit_bytes or run smaller inputs");
}

void Run::set_shape(size_t i, const Shape& shape) {
  Result& r = results_[i];
  if (r.is_bound && r.view.shape != shape)
    throw GraphError("[bind] output '" + output(i).name + "': bound array has shape " + r.view.shape.text() +
                     ", the result has " + shape.text() + "; bind an array of that shape");
  r.view.dtype = output(i).type.dtype;
  r.view.shape = shape;
}

const PlanValue& Run::output(size_t i) const {
  const Plan& plan = executable_->plan();
  return plan.values[plan.outputs[i]];
}

bool Run::wait_for_event(int64_t timeout_ns) const {
  constexpr int64_t kBetweenPollsNs = 50'000'000;
  for (int64_t left_ns = timeout_ns;;) {
    const int64_t slice_ns = left_ns < 0 ? kBetweenPollsNs : std::min(left_ns, kBetweenPollsNs);
    if (event_.wait(slice_ns)) return true;
    if (left_ns >= 0 && (left_ns -= slice_ns) <= 0) return false;
    if (check_interrupt) check_interrupt();
  }
}

void Run::wait(int64_t timeout_ns) {
  const uint64_t start = now_ticks();
  if (!wait_for_event(timeout_ns))
    throw WaitTimeoutError("[wait] the run did not complete within " +
                           std::to_string(static_cast<double>(timeout_ns) * 1e-9) + " s; it goes on, wait again");
  record_wait(start);
  settle();
  if (error_) std::rethrow_exception(error_);
}

void Run::record_wait(uint64_t start) {
  if (!event_.recorder || is_inline_ || executable_->device_->info().is_virtual) return;
  const std::unique_lock<std::mutex> guard = executable_->lock_unless_executing();
  // The recording may be over, and gone, by now.
  if (executable_->recorder_.get() == event_.recorder)
    event_.recorder->host.add({start, now_ticks(), event_.run, -1, 0, Stage::kWait});
}

void Run::settle() {
  std::lock_guard<std::mutex> own(mutex_);
  if (is_settled_) return;
  const std::unique_lock<std::mutex> guard = executable_->lock_unless_executing();
  if (is_lost()) keep_what_is_lost();
  holdings_.release();
  if (event_.is_cancelled())
    error_ = std::make_exception_ptr(RunCancelledError("[wait] the run was cancelled; start it again"));
  else if (event_.status() != Status::kOk)
    error_ = kernel_error(event_, *executable_);
  is_settled_ = true;
}

void Run::keep_what_is_lost() {
  auto& kept = *new std::vector<std::shared_ptr<const void>>{executable_};
  for (const Result& r : results_) kept.push_back(r.fresh);
}

}  // namespace asc
