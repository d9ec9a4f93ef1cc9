/// A line of an input file: a word, then names and values in any order, each of which must be used.
#pragma once

#include "errors.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace replicate
{

class Statement
{
public:
    Statement() = default;

    explicit Statement(const std::string& line)
    {
        std::istringstream words(line);
        words >> m_word;
        for (std::string name, value; words >> name; m_unused[name] = value) {
            if (!(words >> value))
                throw InputError(m_word + "." + name + ": without a value");
            if (m_unused.count(name))
                throw InputError(m_word + "." + name + ": given twice");
        }
    }

    const std::string& Word() const { return m_word; }

    std::string Text(const std::string& name)
    {
        const auto entry = m_unused.extract(name);
        if (!entry)
            throw InputError(m_word + "." + name + ": is missing");
        return entry.mapped();
    }

    /// A number from 0 that the type can hold.
    template <typename Number>
    Number Value(const std::string& name)
    {
        return Parse<Number>(name, Text(name));
    }

    /// A number, or nothing for `none`.
    template <typename Number>
    std::optional<Number> Optional(const std::string& name)
    {
        const auto text = Text(name);
        return text == "none" ? std::nullopt : std::optional(Parse<Number>(name, text));
    }

    /// The place of one word among those that there are.
    std::size_t Choice(const std::string& name, std::initializer_list<const char*> words)
    {
        const auto text = Text(name);
        const auto place = std::find(words.begin(), words.end(), text);
        if (place == words.end())
            Refuse(name, text);
        return static_cast<std::size_t>(place - words.begin());
    }

    bool Flag(const std::string& name) { return Choice(name, {"0", "1"}) == 1; }

    /// The index of something of which there are so many.
    std::uint32_t Place(const std::string& name, std::size_t size)
    {
        const auto place = Value<std::uint32_t>(name);
        if (place >= size)
            Refuse(name, std::to_string(place));
        return place;
    }

    std::vector<std::uint64_t> List(const std::string& name)
    {
        std::istringstream text(Text(name));
        std::vector<std::uint64_t> numbers;
        for (std::string item; std::getline(text, item, ',');)
            numbers.push_back(Parse<std::uint64_t>(name, item));
        return numbers;
    }

    /// Refuse a name that nothing used.
    void End() const
    {
        if (!m_unused.empty())
            throw InputError(m_word + "." + m_unused.begin()->first + ": no such name");
    }

private:
    [[noreturn]] void Refuse(const std::string& name, const std::string& value) const
    {
        throw InputError(m_word + "." + name + ": '" + value + "' is not one");
    }

    template <typename Number>
    Number Parse(const std::string& name, const std::string& text) const
    {
        Number number{};
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number);
        if (error != std::errc{} || rest != end || !(number >= 0) ||
            std::isinf(static_cast<double>(number)))
            Refuse(name, text);
        return number;
    }

    std::string m_word;
    std::map<std::string, std::string> m_unused;
};

} // namespace replicate
