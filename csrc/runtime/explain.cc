// Executable::explain: why the whole and each node run as they do.
#include <algorithm>
#include <map>

#include "runtime/executable.h"

namespace asc {
namespace {

const char* describe(Mode mode, bool is_static) {
  switch (mode) {
    case Mode::kHost:
      return "host: every run resolves what changed and launches task by task (asked for)";
    case Mode::kSink:
      return is_static
                 ? "sink: resolved and loaded once, one submit per run (asked for)"
                 : "sink: each new signature is resolved and loaded when it is first seen, then one submit per run "
                   "(asked for)";
    default:
      return is_static ? "auto: all shapes are static, so the schedule is loaded once and submitted (sink mode)"
                       : "auto: a signature runs in host mode when first seen and is sunk when it comes back, or at "
                         "once where that is worth the risk";
  }
}

std::string where(const PlanNode& node, const Level& level, size_t s, size_t n) {
  if (node.op->kind == OpKind::kControl) return "control flow, driven by the runtime";
  if (node.op->is_host_call)
    return "host call: " + std::string(node.node.attributes.get_string("operator", "")) + " by " +
           std::string(node.node.attributes.get_string("callable", "")) + ", outside the core";
  if (node.is_on_host) return "host value: a shape or branch needs it";
  if (node.is_unread) return "shape: nobody reads the contents of its results";
  if (node.is_view()) return "view: shares its input's bytes";
  const std::shared_ptr<const Tiling>& tiling = level.resolver().tiling(s, n);
  std::string text = tiling ? std::string("task, ") + tiling->implementation : "task, not resolved yet";
  if (tiling && tiling->packed_bytes) text += ", packed constants " + std::to_string(tiling->packed_bytes) + " bytes";
  const char* before = ", fused: ";
  for (const Node& part : node.parts) {
    if (is_turn(part)) continue;
    text += before + part.op + " '" + part.name + "'";
    before = " + ";
  }
  if (is_of_all_steps(node.node) || std::any_of(node.parts.begin(), node.parts.end(), is_of_all_steps))
    text += ", of all steps of the loop that reads its rows";
  if (node.is_copy) text += ", copies a result that would alias an input, a constant or another result";
  if (node.op->kind == OpKind::kDataDependent) text += ", its extent is read at a sync point";
  return text;
}

// The stream of a node's task in the schedule kept last, or else node by node; empty where there is one stream, or no
// task.
std::string stream_of(const Level& level, size_t s, uint32_t n) {
  const std::shared_ptr<const BoundSchedule> kept = level.last_schedule(s);
  const uint32_t number = level.plan().segments[s].nodes[n].number;
  if (!kept) {
    const HostSegment* host = level.host_segment(s);
    const int stream = host ? host->streams().stream_of(n) : -1;
    return stream < 0 ? "" : ", on stream " + std::to_string(stream);
  }
  if (kept->schedule().streams.order.is_single()) return "";
  const Schedule& schedule = kept->schedule();
  for (size_t i = 0; i < schedule.tasks.size(); ++i)
    if (schedule.tasks[i].node == number) return ", on stream " + std::to_string(schedule.streams.order.stream_of[i]);
  return "";
}

std::string where(const HostSegment& host, const LevelOptions& options) {
  if (options.pipeline_workers == 0) return "serial (asked for)";
  if (options.pipeline_workers > 0)
    return std::string("pipelined in ") +
           (asked_shape(options.pipeline_workers, options.cpus) == PipelineShape::kThreeStages ? "three" : "two") +
           " stages (asked for) unless it runs on the caller's thread";
  const StageCosts& of_new = host.costs(Novelty::kNew);
  const StageCosts& of_seen = host.costs(Novelty::kSeen);
  if (!of_new.nodes && !of_seen.nodes) return describe_choice(host.costs(Novelty::kUnknown), options.cpus);
  return "new signatures " + describe_choice(of_new, options.cpus) + "; those that come back " +
         describe_choice(of_seen, options.cpus);
}

void explain_level(const Level& level, const std::string& indent, std::string& out) {
  const Plan& plan = level.plan();
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    if (const HostSegment* host = level.host_segment(s))
      out += indent + "segment " + std::to_string(s) + ", node by node: " + where(*host, level.options()) + "; " +
             host->streams().text() + "\n";
    if (const std::shared_ptr<const BoundSchedule> kept = level.last_schedule(s)) {
      const std::string race = kept->race_text();
      out += indent + "segment " + std::to_string(s) + ", as kept last: " + kept->schedule().streams.text +
             (race.empty() ? "" : "; " + race) + "\n";
    }
    for (size_t n = 0; n < segment.nodes.size(); ++n)
      out += indent + segment.nodes[n].node.op + " '" + segment.nodes[n].node.name +
             "': " + where(segment.nodes[n], level, s, n) + stream_of(level, s, static_cast<uint32_t>(n)) + "\n";
    for (size_t b = 0; b < segment.bodies.size(); ++b) {
      out += indent + "  body '" + segment.bodies[b]->name + "':\n";
      explain_level(level.body(s, b), indent + "    ", out);
    }
  }
}

}  // namespace

std::string Executable::explain() {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  const DeviceInfo& info = device_->info();
  std::string out = "device " + info.name + ": " + info.description + "\n";
  out += std::string("mode ") + describe(options_.mode, plan_->is_static()) + "\n";
  for (const std::string& reason : plan_->dynamic_reasons) out += "dynamic because " + reason + "\n";
  if (info.can_run_inline) out += "a synchronous run on an idle stream executes on the caller's thread\n";
  explain_level(*root_, "  ", out);
  if (foresight_) {
    const CacheCounters kept = root_->schedule_counters();
    out += foresight_->explain() + "schedules: " + std::to_string(kept.spared) +
           " times one stayed because it was foreseen, " + std::to_string(kept.refused) +
           " times one was not kept because all others were due before\n";
  }
  return out;
}

}  // namespace asc
