/// Strict JSON (RFC 8259) reader: no NaN, no duplicate keys, no trailing text, bounded depth.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace replicate::json
{

enum class Kind { Null, Boolean, Number, String, Array, Object };

/// A parsed value. `text` is a string's content or a number's token exactly as written.
struct Value {
    Kind kind = Kind::Null;
    bool boolean = false;
    double number = 0;
    std::string text{};
    std::vector<Value> items{};
    std::vector<std::pair<std::string, Value>> members{};
};

/// Parse a whole document; throws InputError with line and column.
Value Parse(std::string_view document);

/// Keys sorted, no white space, numbers as written: what the scenario's identity is a hash of.
std::string Canonical(const Value& value);

/// Short text of a value for an error message.
std::string Describe(const Value& value);

} // namespace replicate::json
