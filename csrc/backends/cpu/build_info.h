// What the CPU back end was built with, for bug reports.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace asc {

// Name and version or choice, such as {"onednn", "3.2.0"}; "absent" where a library is not built in.
std::vector<std::pair<std::string, std::string>> cpu_build_info();

}  // namespace asc
