#include "json.hpp"

#include "errors.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace replicate::json
{
namespace
{

constexpr int kDeepest = 32;

class Parser
{
public:
    explicit Parser(std::string_view document) : m_text(document) {}

    Value Document()
    {
        Value value = Any(0);
        SkipSpace();
        if (m_at != m_text.size())
            Fail("text after the end of the document");
        return value;
    }

private:
    [[noreturn]] void Fail(const std::string& what) const
    {
        const auto upto = m_text.substr(0, std::min(m_at, m_text.size()));
        const auto line = 1 + std::count(upto.begin(), upto.end(), '\n');
        const auto newline = upto.rfind('\n');
        const auto column = newline == upto.npos ? upto.size() + 1 : upto.size() - newline;
        throw InputError("not valid JSON at line " + std::to_string(line) + ", column " +
                         std::to_string(column) + ": " + what);
    }

    void SkipSpace()
    {
        while (m_at < m_text.size() &&
               std::string_view(" \t\r\n").find(m_text[m_at]) != std::string_view::npos)
            ++m_at;
    }

    bool Take(char c)
    {
        SkipSpace();
        if (m_at < m_text.size() && m_text[m_at] == c) {
            ++m_at;
            return true;
        }
        return false;
    }

    void Expect(char c)
    {
        if (!Take(c))
            Fail(std::string("expected '") + c + "'");
    }

    Value Any(int depth)
    {
        if (depth > kDeepest)
            Fail("nested too deeply");
        SkipSpace();
        if (m_at == m_text.size())
            Fail("unexpected end");
        switch (m_text[m_at]) {
        case '{':
            return Object(depth);
        case '[':
            return Array(depth);
        case '"':
            return Value{.kind = Kind::String, .text = String()};
        default:
            return Word();
        }
    }

    Value Object(int depth)
    {
        Value value{.kind = Kind::Object};
        Expect('{');
        if (Take('}'))
            return value;
        do {
            SkipSpace();
            std::string key = String();
            for (const auto& [known, unused] : value.members)
                if (known == key)
                    Fail("duplicate key '" + key + "'");
            Expect(':');
            Value member = Any(depth + 1);
            value.members.emplace_back(std::move(key), std::move(member));
        } while (Take(','));
        Expect('}');
        return value;
    }

    Value Array(int depth)
    {
        Value value{.kind = Kind::Array};
        Expect('[');
        if (Take(']'))
            return value;
        do
            value.items.push_back(Any(depth + 1));
        while (Take(','));
        Expect(']');
        return value;
    }

    /// true, false, null or a number: whatever runs up to the next delimiter.
    Value Word()
    {
        const auto begin = m_at;
        while (m_at < m_text.size() &&
               std::string_view(" \t\r\n,]}:").find(m_text[m_at]) == std::string_view::npos)
            ++m_at;
        const auto word = m_text.substr(begin, m_at - begin);
        if (word == "null")
            return Value{};
        if (word == "true" || word == "false")
            return Value{.kind = Kind::Boolean, .boolean = word == "true"};
        m_at = begin;
        return Value{.kind = Kind::Number, .number = Number(word), .text = std::string(word)};
    }

    double Number(std::string_view word)
    {
        const auto digits = word.substr(word.starts_with('-') ? 1 : 0);
        const bool leads = !digits.empty() && digits[0] >= '0' && digits[0] <= '9';
        const bool padded =
            digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
        double number = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (!leads || padded || error != std::errc() || end != word.data() + word.size() ||
            !std::isfinite(number))
            Fail("'" + std::string(word.substr(0, 40)) +
                 "' is not a finite number, true, false or null");
        m_at += word.size();
        return number;
    }

    std::string String()
    {
        if (m_at == m_text.size() || m_text[m_at] != '"')
            Fail("expected a string");
        std::string text;
        for (++m_at; m_at < m_text.size() && m_text[m_at] != '"'; ++m_at) {
            if (static_cast<unsigned char>(m_text[m_at]) < 0x20)
                Fail("control character in a string");
            if (m_text[m_at] == '\\')
                Escape(text);
            else
                text += m_text[m_at];
        }
        if (m_at == m_text.size())
            Fail("string without an end");
        ++m_at;
        return text;
    }

    /// Identifiers are ASCII, so of the \u escapes only those of ASCII are of use.
    void Escape(std::string& text)
    {
        constexpr std::string_view names = "\"\\/bfnrt";
        constexpr std::string_view values = "\"\\/\b\f\n\r\t";
        ++m_at;
        const char c = m_at < m_text.size() ? m_text[m_at] : '\0';
        if (const auto found = names.find(c); found != names.npos) {
            text += values[found];
            return;
        }
        unsigned code = 0;
        const auto* begin = m_text.data() + std::min(m_at + 1, m_text.size());
        const auto* end = m_text.data() + std::min(m_at + 5, m_text.size());
        const auto [stop, error] = std::from_chars(begin, end, code, 16);
        if (c != 'u' || error != std::errc() || stop != begin + 4 || code > 0x7f)
            Fail("unsupported escape in a string; use ASCII identifiers");
        text += static_cast<char>(code);
        m_at += 4;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
};

std::string Quoted(const std::string& text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += '\\';
        out += c;
    }
    return out + '"';
}

} // namespace

Value Parse(std::string_view document)
{
    return Parser(document).Document();
}

std::string Canonical(const Value& value)
{
    std::string out;
    switch (value.kind) {
    case Kind::Null:
        return "null";
    case Kind::Boolean:
        return value.boolean ? "true" : "false";
    case Kind::Number:
        return value.text;
    case Kind::String:
        return Quoted(value.text);
    case Kind::Array:
        for (const auto& item : value.items)
            out += (out.empty() ? "" : ",") + Canonical(item);
        return "[" + out + "]";
    case Kind::Object:
        break;
    }
    auto members = value.members;
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, member] : members)
        out += (out.empty() ? "" : ",") + Quoted(key) + ":" + Canonical(member);
    return "{" + out + "}";
}

std::string Describe(const Value& value)
{
    switch (value.kind) {
    case Kind::Array:
        return "a list";
    case Kind::Object:
        return "an object";
    case Kind::String:
        return "'" + value.text.substr(0, 64) + "'";
    default:
        return Canonical(value);
    }
}

} // namespace replicate::json
