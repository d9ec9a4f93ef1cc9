/// The input file of a scenario; workflow/replication/engines/input_file.py has its grammar.
#pragma once

#include "scenario.hpp"

#include <string>

namespace replicate
{

/// Read an input file for this engine; throws InputError at a fault. The meaning of its
/// values was checked when the file was made.
Scenario ReadInputFile(const std::string& path);

} // namespace replicate
