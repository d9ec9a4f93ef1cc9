/// The result files: written to temporary files, then renamed, so that a file is whole or absent.
#pragma once

#include "flows.hpp"
#include "metrics.hpp"
#include "scenario.hpp"
#include "topology.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace replicate
{

/// A file that appears under its name only when it is complete.
class AtomicFile
{
public:
    AtomicFile(const std::filesystem::path& directory, const std::string& name);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void Write(const std::string& text);
    /// Make it appear; throws InputError if anything could not be written.
    void Commit();

private:
    std::filesystem::path m_final;
    std::filesystem::path m_temporary;
    std::ofstream m_file;
    bool m_committed = false;
};

/// Rows of series.csv at every sampling instant.
class Sampler
{
public:
    Sampler(const Scenario& scenario, const Topology& topology, const Flows& flows,
            Metrics& metrics, AtomicFile& file);

    /// Take the sample that falls on the very end of the run, if one does.
    void Finish();

private:
    void Schedule();
    void Sample();
    std::string FlowRow(std::uint32_t flow);
    std::string MonitorRow(const DirectionSpec& monitor);
    std::string SocketCells(const std::string& goodput) const;

    const Scenario& m_scenario;
    const Topology& m_topology;
    const Flows& m_flows;
    Metrics& m_metrics;
    AtomicFile& m_file;
    bool m_socket_samples; ///< of some flow: then all rows have their columns
    std::int64_t m_next_ns = 0;
};

/// The text of flows.csv.
std::string FlowsCsv(const Scenario& scenario, Metrics& metrics);

/// The text of run.json.
std::string RunJson(const Scenario& scenario, Metrics& metrics, std::uint64_t events);

} // namespace replicate
