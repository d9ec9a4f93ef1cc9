/// Numbers as text: shortest round trip, independent of locale.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

namespace replicate
{

inline std::string Shortest(double number)
{
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

/// Nanoseconds as exact decimal seconds, without trailing zeros.
inline std::string DecimalSeconds(std::int64_t ns)
{
    std::string text = std::to_string(ns / 1'000'000'000);
    std::string fraction = std::to_string(ns % 1'000'000'000 + 1'000'000'000).substr(1);
    while (!fraction.empty() && fraction.back() == '0')
        fraction.pop_back();
    return fraction.empty() ? text : text + "." + fraction;
}

} // namespace replicate
