/// SHA-256 (FIPS 180-4), for the identity of a scenario.
#pragma once

#include <string>
#include <string_view>

namespace replicate
{

/// Hex digest of a text.
std::string Sha256(std::string_view text);

} // namespace replicate
