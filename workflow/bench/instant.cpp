// An engine that simulates nothing and returns at once: for each run of a plan it writes complete
// tables of zeros, so that what a sweep takes is what the workflow itself takes.
//
//   instant --plan <file> --output <folder>
//
// The plan's grammar is that of replication/engines/lowering.py.

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace
{

struct Plan {
    std::string scenario;
    std::int64_t duration_ns = 0;
    std::int64_t interval_ns = 1;
    std::vector<std::string> flows;
    std::vector<std::string> links;
    std::vector<std::string> monitors;
};

Plan ReadPlan(const std::string& path)
{
    Plan plan;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word, name, value;
        words >> word;
        std::size_t link = 0;
        while (words >> name >> value) {
            if (word == "plan" && name == "scenario")
                plan.scenario = value;
            if (word == "run" && name == "duration_ns")
                plan.duration_ns = std::stoll(value);
            if (word == "run" && name == "sampling_interval_ns")
                plan.interval_ns = std::stoll(value);
            if (word == "link" && name == "id")
                plan.links.push_back(value);
            if (word == "flow" && name == "id")
                plan.flows.push_back(value);
            if (word == "monitor" && name == "link")
                link = std::stoul(value);
            if (word == "monitor" && name == "direction")
                plan.monitors.push_back(plan.links.at(link) + ":" + value);
        }
    }
    return plan;
}

void WriteTables(const Plan& plan, const std::string& folder)
{
    std::ofstream flows(folder + "/flows.csv");
    flows
        << "flow,kind,throughput_bps,goodput_bps,delay_mean_s,delay_p95_s,rtt_mean_s,packets_sent,"
           "packets_received,packets_dropped,packets_in_flight,retransmissions,timeouts,loss_rate,"
           "delivery_ratio\n";
    for (const auto& flow : plan.flows)
        flows << flow << ",tcp,0,0,0,0,0,0,0,0,0,0,0,0,0\n";

    std::ofstream series(folder + "/series.csv");
    series << "time_s,flow,link,throughput_bps,cwnd_bytes,ssthresh_bytes,rtt_s,delay_s,"
              "queue_packets,drops,retransmissions\n";
    const auto samples = plan.duration_ns / plan.interval_ns;
    for (std::int64_t sample = 1; sample <= samples; ++sample) {
        const double time_s = 1e-9 * static_cast<double>(sample * plan.interval_ns);
        for (const auto& flow : plan.flows)
            series << time_s << ',' << flow << ",,0,0,0,0,0,,0,0\n";
        for (const auto& link : plan.monitors)
            series << time_s << ",," << link << ",0,,,,,0,0,\n";
    }

    std::ofstream run(folder + "/run.json");
    run << "{\"engine\": \"ns3\", \"scenario\": \"" << plan.scenario.substr(0, 16) << "\"}\n";
}

} // namespace

int main(int argc, char* argv[])
{
    std::string plan, output;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--plan") == 0)
            plan = argv[i + 1];
        if (std::strcmp(argv[i], "--output") == 0)
            output = argv[i + 1];
    }
    if (plan.empty() || output.empty()) {
        std::cerr << "usage: instant --plan <file> --output <folder>\n";
        return 2;
    }
    WriteTables(ReadPlan(plan), output);
    return 0;
}
