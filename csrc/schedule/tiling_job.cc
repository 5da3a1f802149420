#include "schedule/tiling_job.h"

namespace asc {

bool TilingJob::try_make() {
  if (is_taken_.exchange(true)) return false;
  make();
  done_.open();  // last: whoever waits may end the run and its recording
  return true;
}

void TilingJob::make() {
  const StageTimer timer(recorder_, Stage::kTiling, run_, static_cast<int32_t>(node_->number));
  try {
    std::vector<const Shape*> shapes;
    std::vector<const HostTensor*> hosts;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      shapes.push_back(has_input_[i] ? &inputs_[i] : nullptr);
      hosts.push_back(hosts_[i].get());
    }
    tiling_ = cache_->fill(key_, instance_, [&] {
      const TilingContext ctx(node_->node, node_->input_types.data(), shapes.data(), hosts.data(),
                              static_cast<int>(shapes.size()), node_->output_types.data(), outputs_.data(),
                              static_cast<int>(outputs_.size()), node_->constant_inputs, *options_, kernel_->data);
      return create_tiling_with(*kernel_, ctx);
    });
  } catch (...) {
    error_ = std::current_exception();
  }
}

const std::shared_ptr<const Tiling>& TilingJob::wait() {
  settle();
  if (error_) std::rethrow_exception(error_);
  return tiling_;
}

}  // namespace asc
