/// Typed access to the fields of a JSON object: every error names the field and the remedy.
#pragma once

#include "json.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace replicate
{

/// Refuse a value of a field with what to give instead.
[[noreturn]] void Refuse(const std::string& field, const std::string& value,
                         const std::string& remedy);

/// One JSON object at a path; Finish() refuses the keys that nobody asked for.
class Fields
{
public:
    Fields(const json::Value& value, std::string path);

    bool Has(const std::string& key) const;
    std::string Path(const std::string& key) const;

    double Number(const std::string& key, double low, double high, bool low_open = false,
                  std::optional<double> fallback = {});
    std::int64_t Integer(const std::string& key, std::int64_t low, std::int64_t high,
                         std::optional<std::int64_t> fallback = {});
    std::uint32_t Count(const std::string& key, std::optional<std::int64_t> fallback = {});
    std::optional<std::uint32_t> OptionalCount(const std::string& key);
    /// Seconds to nanoseconds, the resolution of the simulator.
    std::int64_t Nanoseconds(const std::string& key, bool positive,
                             std::optional<double> fallback = {});
    bool Boolean(const std::string& key, std::optional<bool> fallback = {});
    std::string Text(const std::string& key, std::optional<std::string> fallback = {});
    std::string Identifier(const std::string& key);
    std::string Choice(const std::string& key, std::initializer_list<const char*> choices,
                       std::optional<std::string> fallback = {});
    const std::vector<json::Value>& List(const std::string& key, std::size_t least,
                                         bool optional = false);
    const json::Value* Object(const std::string& key, bool nullable = false);
    void Finish() const;

private:
    /// The member, or nullptr where it is absent and the caller has a fallback.
    const json::Value* Find(const std::string& key, json::Kind kind, const char* what,
                            bool optional, bool nullable = false);

    const json::Value& m_value;
    std::string m_path;
    std::set<std::string> m_known;
};

/// Lower-case identifier, as the scenario model has it.
std::string CheckIdentifier(const std::string& text, const std::string& field);

} // namespace replicate
