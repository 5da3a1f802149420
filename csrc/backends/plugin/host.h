// What the core does for plug-ins: the functions behind asc_host.
#pragma once

#include <ascendsched/device.h>

namespace asc {

// Lives as long as the process.
const asc_host& plugin_host();

}  // namespace asc
