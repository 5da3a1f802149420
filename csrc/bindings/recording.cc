// A recording as Python reads it: arrays of spans.
#include <array>
#include <cstddef>
#include <memory>

#include "base/error.h"
#include "bindings/arrays.h"
#include "bindings/executable.h"
#include "profile/clock.h"

namespace asc {
namespace {

py::array spans_array(const SpanLog& log) {
  py::list field_names, formats, offsets;
  const auto field = [&](const char* name, const char* format, size_t offset) {
    field_names.append(name);
    formats.append(py::dtype(format));
    offsets.append(offset);
  };
  field("start", "u8", offsetof(Span, start_ticks));
  field("end", "u8", offsetof(Span, end_ticks));
  field("run", "u4", offsetof(Span, run));
  field("node", "i4", offsetof(Span, node));
  field("sequence", "u4", offsetof(Span, sequence));
  field("stage", "u1", offsetof(Span, stage));
  field("worker", "u1", offsetof(Span, worker));
  const py::dtype dtype(field_names, formats, offsets, sizeof(Span));
  return py::array(dtype, {static_cast<ssize_t>(log.size())}, {static_cast<ssize_t>(sizeof(Span))}, log.data());
}

// Host spans of the launching thread and of the pipeline's workers, or device spans of all streams.
template <size_t kCount>
py::list arrays_of(const SpanLog& first, const std::array<std::unique_ptr<SpanLog>, kCount>& others, uint64_t* lost) {
  py::list arrays;
  arrays.append(spans_array(first));
  *lost += first.lost();
  for (const auto& log : others) {
    if (!log) continue;
    arrays.append(spans_array(*log));
    *lost += log->lost();
  }
  return arrays;
}

}  // namespace

py::dict stop_profile(PyExecutable& exe) {
  std::unique_ptr<Recorder> r;
  {
    const Unlocked unlocked;
    r = exe.core->stop_recording();
  }
  if (!r) throw PlanError("[profile] no profile is on");
  py::list nodes;
  for (const NodeInfo& n : exe.core->nodes()) nodes.append(py::make_tuple(n.name, n.op));
  py::dict d;
  uint64_t lost = 0;
  const py::object concatenate = py::module_::import("numpy").attr("concatenate");
  d["host"] = concatenate(arrays_of(r->host, r->workers, &lost));
  d["device"] = concatenate(arrays_of(r->device, r->streams, &lost));
  d["ns_per_tick"] = r->is_virtual() ? 1.0 : ns_per_tick();
  d["lost"] = lost;
  d["inline"] = r->was_inline;
  d["device_name"] = exe.core->device_info().name;
  d["nodes"] = nodes;
  return d;
}

}  // namespace asc
