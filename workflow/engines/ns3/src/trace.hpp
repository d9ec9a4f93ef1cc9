/// Optional packet-level record of the TCP senders, for tests and for looking closely.
#pragma once

#include "scenario.hpp"

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace replicate
{

/// Rows of time, flow, event, sequence, cwnd, ssthresh; a no-op unless a file is opened.
class Trace
{
public:
    explicit Trace(const Scenario& scenario) : m_scenario(scenario) {}

    /// Write to a file from now on; throws InputError if it cannot be created.
    void Open(const std::string& path);
    bool IsOpen() const { return m_file.is_open(); }
    void Add(std::int64_t time_ns, std::uint32_t flow, const char* event, std::uint32_t sequence,
             std::uint32_t cwnd, std::optional<std::uint32_t> ssthresh);
    /// Throws InputError if anything could not be written.
    void Close();

private:
    const Scenario& m_scenario;
    std::ofstream m_file;
    std::string m_path;
};

} // namespace replicate
