/// How the program ends when it cannot go on: one line on stderr and an exit code.
#pragma once

#include <filesystem>
#include <string>

namespace replicate
{

/// Print the message as one line, even if a hostile input is in it; returns the code.
int Complain(const std::string& message, int code);

/// Turn assertions and fatal errors inside ns-3, which end in std::terminate, into exit code 3.
void CatchFatalErrors();

/// Files to remove if the program ends that way.
void RegisterUnfinished(const std::filesystem::path& path);

} // namespace replicate
