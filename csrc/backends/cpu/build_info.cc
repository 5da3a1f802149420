#include "backends/cpu/build_info.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdio>

#include "backends/cpu/blas.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/onednn.h"

namespace asc {
namespace {

std::string onednn_version() {
#if ASC_HAVE_ONEDNN
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
#else
  return "absent";
#endif
}

// The feature words of the CPU, in hexadecimal: kernel libraries choose their code by them.
std::string cpu_features() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0, words[5] = {};
  if (__get_cpuid(1, &a, &b, &c, &d)) words[0] = c & ~(1u << 27);  // OSXSAVE belongs to the operating system
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) words[1] = b, words[2] = c, words[3] = d;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) words[4] = a;
  char text[5 * 9 + 1];
  char* at = text;
  for (unsigned word : words) at += std::snprintf(at, 10, "%s%08x", at == text ? "" : "-", word);
  return text;
#else
  return "generic";
#endif
}

}  // namespace

std::vector<std::pair<std::string, std::string>> cpu_build_info() {
  static const std::string features = cpu_features();  // asking a virtual CPU takes tens of microseconds
  return {{"onednn", onednn_version()},
          {"blas", cpu::blas_name()},
          {"isa", kIsaNames[static_cast<int>(current_isa())]},
          {"cpu", features},
          {"compiler", __VERSION__}};
}

}  // namespace asc
