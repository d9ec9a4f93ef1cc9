/// What this engine supports; everything else is refused by name, never approximated.
#pragma once

#include "scenario.hpp"

#include <string>

namespace replicate
{

/// ns-3 type of a congestion control; Tahoe and Reno share one of ours, in sockets of ours.
std::string CongestionTypeId(const std::string& congestion_control);

/// Refuse what a TCP flow asks for and this engine has not; `path` ends in a dot.
void CheckFeatures(const FlowSpec& flow, const std::string& path);

/// The JSON of `--supports`.
std::string SupportsJson();

} // namespace replicate
