/// The plan that the workflow makes of a scenario (workflow/replication/engines/lowering.py has its
/// grammar).
#pragma once

#include "scenario.hpp"

#include <string>

namespace replicate
{

/// Read a plan for this engine; throws InputError at whatever is not one. What its values mean was
/// checked when it was made.
Scenario ReadPlan(const std::string& path);

} // namespace replicate
