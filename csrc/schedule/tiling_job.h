// A tiling to be made, with all that making it reads: any thread may make it while the resolver goes on.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <vector>

#include "profile/recorder.h"
#include "schedule/tiling_cache.h"
#include "sync/latch.h"

namespace asc {

class TilingJob {
 public:
  // Makes the tiling unless somebody has begun to; false then.
  bool try_make();
  bool is_made() const { return done_.is_open(); }
  // Waits until it is made, or could not be.
  void settle() const { done_.wait(-1); }
  // As settle. Throws what making it threw.
  const std::shared_ptr<const Tiling>& wait();

 private:
  friend class Resolver;
  void make();
  Recorder* recorder_ = nullptr;
  uint32_t run_ = 0;
  const PlanNode* node_ = nullptr;
  const Kernel* kernel_ = nullptr;
  const DeviceOptions* options_ = nullptr;
  TilingCache* cache_ = nullptr;
  TilingCache::InstancePtr instance_;
  Key key_;
  std::vector<bool> has_input_;
  std::vector<Shape> inputs_, outputs_;
  std::vector<std::shared_ptr<const HostTensor>> hosts_;
  std::atomic<bool> is_taken_{false};
  std::shared_ptr<const Tiling> tiling_;
  std::exception_ptr error_;
  Latch done_;
};

}  // namespace asc
