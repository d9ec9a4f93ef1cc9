#include "fields.hpp"

#include "errors.hpp"

#include <charconv>
#include <cmath>

namespace replicate
{
namespace
{

std::string Plain(double number)
{
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

} // namespace

void Refuse(const std::string& field, const std::string& value, const std::string& remedy)
{
    throw InputError(field + ": " + value + ": " + remedy);
}

std::string CheckIdentifier(const std::string& text, const std::string& field)
{
    constexpr std::string_view first = "abcdefghijklmnopqrstuvwxyz0123456789";
    bool good = !text.empty() && text.size() <= 64 && first.find(text[0]) != first.npos;
    for (const char c : text)
        good = good && (first.find(c) != first.npos || c == '_' || c == '.' || c == '-');
    if (!good)
        Refuse(field, "'" + text.substr(0, 64) + "' is not an identifier",
               "use 1 to 64 of a-z 0-9 _ . - and begin with a letter or digit");
    return text;
}

Fields::Fields(const json::Value& value, std::string path) : m_value(value), m_path(std::move(path))
{
    if (value.kind != json::Kind::Object)
        Refuse(m_path.empty() ? "document" : m_path, json::Describe(value), "give an object");
}

std::string Fields::Path(const std::string& key) const
{
    return m_path.empty() ? key : m_path + "." + key;
}

bool Fields::Has(const std::string& key) const
{
    for (const auto& [name, member] : m_value.members)
        if (name == key)
            return member.kind != json::Kind::Null;
    return false;
}

const json::Value* Fields::Find(const std::string& key, json::Kind kind, const char* what,
                                bool optional, bool nullable)
{
    m_known.insert(key);
    for (const auto& [name, member] : m_value.members) {
        if (name != key)
            continue;
        if (nullable && member.kind == json::Kind::Null)
            return nullptr;
        if (member.kind != kind)
            Refuse(Path(key), json::Describe(member), std::string("give ") + what);
        return &member;
    }
    if (!optional)
        Refuse(Path(key), "missing", std::string("give ") + what);
    return nullptr;
}

double Fields::Number(const std::string& key, double low, double high, bool low_open,
                      std::optional<double> fallback)
{
    const auto* value = Find(key, json::Kind::Number, "a number", fallback.has_value());
    if (!value)
        return *fallback;
    const double number = value->number;
    if (number < low || (low_open && number <= low) || number > high)
        Refuse(Path(key), value->text,
               "give a number " + std::string(low_open ? "above " : "of at least ") + Plain(low) +
                   " and at most " + Plain(high));
    return number;
}

std::int64_t Fields::Integer(const std::string& key, std::int64_t low, std::int64_t high,
                             std::optional<std::int64_t> fallback)
{
    const auto* value = Find(key, json::Kind::Number, "an integer", fallback.has_value());
    if (!value)
        return *fallback;
    const double number = value->number;
    if (number != std::floor(number) || number < static_cast<double>(low) ||
        number > static_cast<double>(high))
        Refuse(Path(key), value->text,
               "give an integer from " + std::to_string(low) + " to " + std::to_string(high));
    return static_cast<std::int64_t>(number);
}

std::uint32_t Fields::Count(const std::string& key, std::optional<std::int64_t> fallback)
{
    return static_cast<std::uint32_t>(Integer(key, 1, 1'000'000'000, fallback));
}

std::optional<std::uint32_t> Fields::OptionalCount(const std::string& key)
{
    if (!Has(key)) {
        m_known.insert(key);
        return {};
    }
    return Count(key);
}

std::int64_t Fields::Nanoseconds(const std::string& key, bool positive,
                                 std::optional<double> fallback)
{
    const double seconds = Number(key, 0, 1e6, positive, fallback);
    const auto ns = static_cast<std::int64_t>(std::llround(seconds * 1e9));
    if (positive && ns == 0)
        Refuse(Path(key), Plain(seconds), "give at least 1e-9, the simulator's resolution");
    return ns;
}

bool Fields::Boolean(const std::string& key, std::optional<bool> fallback)
{
    const auto* value = Find(key, json::Kind::Boolean, "true or false", fallback.has_value());
    return value ? value->boolean : *fallback;
}

std::string Fields::Text(const std::string& key, std::optional<std::string> fallback)
{
    const auto* value = Find(key, json::Kind::String, "a string", fallback.has_value());
    return value ? value->text : *fallback;
}

std::string Fields::Identifier(const std::string& key)
{
    return CheckIdentifier(Text(key), Path(key));
}

std::string Fields::Choice(const std::string& key, std::initializer_list<const char*> choices,
                           std::optional<std::string> fallback)
{
    const std::string text = Text(key, std::move(fallback));
    std::string all;
    for (const std::string choice : choices) {
        if (text == choice)
            return text;
        all += (all.empty() ? "" : ", ") + choice;
    }
    Refuse(Path(key), "'" + text.substr(0, 64) + "'", "give one of " + all);
}

const std::vector<json::Value>& Fields::List(const std::string& key, std::size_t least,
                                             bool optional)
{
    static const std::vector<json::Value> none;
    const auto* value = Find(key, json::Kind::Array, "a list", optional);
    if (!value)
        return none;
    if (value->items.size() < least)
        Refuse(Path(key), std::to_string(value->items.size()) + " items",
               "give at least " + std::to_string(least));
    return value->items;
}

const json::Value* Fields::Object(const std::string& key, bool nullable)
{
    return Find(key, json::Kind::Object, "an object", nullable, nullable);
}

void Fields::Finish() const
{
    for (const auto& [name, member] : m_value.members) {
        if (m_known.contains(name))
            continue;
        std::string known;
        for (const auto& key : m_known)
            known += (known.empty() ? "" : ", ") + key;
        Refuse(Path(name.substr(0, 64)), "unknown key", "remove it; known here: " + known);
    }
}

} // namespace replicate
