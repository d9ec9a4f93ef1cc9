/// replicate-ns3: run one scenario on ns-3 and write flows.csv, series.csv and run.json.

#include "complain.hpp"
#include "errors.hpp"
#include "flows.hpp"
#include "input_file.hpp"
#include "metrics.hpp"
#include "output.hpp"
#include "release.hpp"
#include "topology.hpp"
#include "trace.hpp"

#include <ns3/object-factory.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace
{

using namespace replicate;

/// The fastest of ns-3's for these scenarios, by measurement; results do not depend on it.
constexpr const char* kScheduler = "ns3::PriorityQueueScheduler";

constexpr const char* kHelp =
    "usage: replicate-ns3 --input FILE --output DIR [--trace FILE]\n"
    "       replicate-ns3 --version | --help\n"
    "\n"
    "Run one scenario on ns-3 and write flows.csv, series.csv and run.json into DIR.\n"
    "  --input FILE  the input file, which `replicate run` writes next to its results\n"
    "  --output DIR  directory for the results; created if absent\n"
    "  --trace FILE  also record every segment and acknowledgement of the TCP senders (CSV)\n"
    "  --version     print the simulator's version\n"
    "exit code: 0 done, 2 bad input, 3 defect of this program\n";

struct Options {
    std::string input, output, trace;
};

Options ParseOptions(const std::vector<std::string>& words)
{
    Options options;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        std::string* target = words[i] == "--input"    ? &options.input
                              : words[i] == "--output" ? &options.output
                              : words[i] == "--trace"  ? &options.trace
                                                       : nullptr;
        if (!target)
            throw InputError(words[i] + ": unknown option: see --help");
        if (i + 1 == words.size() || words[i + 1].empty())
            throw InputError(words[i] + ": without a value: see --help");
        *target = words[i + 1];
    }
    if (options.input.empty() || options.output.empty())
        throw InputError("--input and --output: missing: give both, see --help");
    return options;
}

void MakeDirectory(const std::string& path)
{
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error || !std::filesystem::is_directory(path, error))
        throw InputError(path + ": not a directory that can be created: give another --output");
}

void Run(const Options& options)
{
    const Scenario scenario = ReadInputFile(options.input);
    Trace trace(scenario);
    if (!options.trace.empty())
        trace.Open(options.trace);
    MakeDirectory(options.output);
    AtomicFile flows_file(options.output, "flows.csv");
    AtomicFile series_file(options.output, "series.csv");
    AtomicFile run_file(options.output, "run.json");

    ns3::Simulator::SetScheduler(ns3::ObjectFactory(kScheduler));
    ns3::RngSeedManager::SetSeed(scenario.seed);
    ns3::RngSeedManager::SetRun(1);
    Metrics metrics(scenario);
    Topology topology(scenario, metrics);
    const Flows flows(scenario, topology, metrics, trace);
    Sampler sampler(scenario, topology, flows, metrics, series_file);
    ns3::Simulator::Stop(ns3::NanoSeconds(scenario.duration_ns));
    ns3::Simulator::Run();
    const auto events = ns3::Simulator::GetEventCount();
    sampler.Finish();
    topology.Drain(metrics);
    metrics.CheckConservation(scenario);

    flows_file.Write(FlowsCsv(scenario, metrics));
    run_file.Write(RunJson(scenario, metrics, events));
    trace.Close();
    flows_file.Commit();
    series_file.Commit();
    run_file.Commit();
}

} // namespace

int main(int argc, char** argv)
{
    CatchFatalErrors();
    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        if (words.size() == 1 && words[0] == "--help")
            std::cout << kHelp;
        else if (words.size() == 1 && words[0] == "--version")
            std::cout << "ns3 " << kSimulatorVersion << " (replicate-ns3)\n";
        else
            Run(ParseOptions(words));
    } catch (const InputError& error) {
        return Complain(error.what(), 2);
    } catch (const std::exception& error) {
        return Complain(std::string("internal error: ") + error.what(), 3);
    }
    return 0;
}
