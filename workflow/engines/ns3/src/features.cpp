#include "features.hpp"

#include "fields.hpp"
#include "release.hpp"

#include <map>

namespace replicate
{
namespace
{

const std::map<std::string, std::string>& Supported()
{
    static const std::map<std::string, std::string> types = {
        {"bbr", "ns3::TcpBbr"},
        {"bic", "ns3::TcpBic"},
        {"cubic", "ns3::TcpCubic"},
        {"highspeed", "ns3::TcpHighSpeed"},
        {"htcp", "ns3::TcpHtcp"},
        {"hybla", "ns3::TcpHybla"},
        {"illinois", "ns3::TcpIllinois"},
        {"ledbat", "ns3::TcpLedbat"},
        {"linuxreno", "ns3::TcpLinuxReno"},
        {"lp", "ns3::TcpLp"},
        {"newreno", "ns3::TcpNewReno"},
        {"reno", "replicate::ClassicWindow"},
        {"scalable", "ns3::TcpScalable"},
        {"tahoe", "replicate::ClassicWindow"},
        {"vegas", "ns3::TcpVegas"},
        {"veno", "ns3::TcpVeno"},
        {"westwood_plus", kWestwoodPlusIsMode ? "ns3::TcpWestwood" : "ns3::TcpWestwoodPlus"},
        {"yeah", "ns3::TcpYeah"},
    };
    return types;
}

const std::map<std::string, std::string>& Refused()
{
    static const std::map<std::string, std::string> reasons = {
        {"dctcp", "not supported by ns3: it needs ECN, which scenarios do not have"},
        {"westwood", "not supported by ns3: withdrawn from ns-3 for its bandwidth estimate; "
                     "westwood_plus is what remains"},
    };
    return reasons;
}

} // namespace

std::string CongestionTypeId(const std::string& congestion_control)
{
    return Supported().at(congestion_control);
}

void CheckFeatures(const FlowSpec& flow, const std::string& path)
{
    const std::string& name = flow.congestion_control;
    if (const auto refused = Refused().find(name); refused != Refused().end())
        Refuse(path + "congestion_control", "'" + name + "'", refused->second);
    if (!Supported().contains(name)) {
        std::string all;
        for (const auto& [known, type] : Supported())
            all += (all.empty() ? "" : ", ") + known;
        Refuse(path + "congestion_control", "'" + name.substr(0, 64) + "'", "give one of " + all);
    }
    const bool ours = name == "tahoe" || name == "reno";
    if (ours && flow.sack)
        Refuse(path + "sack", "true", name + " has no SACK; use newreno with sack true");
    if (ours && flow.prr)
        Refuse(path + "recovery", "'prr'", name + " has its own recovery; use classic");
    if (name == "bbr" && !flow.sack && !flow.limited_transmit)
        Refuse(path + "sack", "false", "ns-3's bbr needs sack or limited_transmit; use true");
    if ((name == "ledbat" || name == "lp") && !flow.timestamps)
        Refuse(path + "timestamps", "false", name + " measures one-way delay by them; use true");
    if (name == "cubic" && flow.cubic_tcp_friendliness && !kCubicHasFriendliness)
        Refuse(path + "cubic_tcp_friendliness", "true",
               std::string("cubic of ns-3 ") + kSimulatorVersion + " has none; use false");
}

std::string SupportsJson()
{
    std::string controls, refused;
    for (const auto& [name, type] : Supported())
        controls += (controls.empty() ? "" : ", ") + ("\"" + name + "\"");
    for (const auto& [name, reason] : Refused())
        refused += (refused.empty() ? "" : ", ") + ("\"" + name + "\": \"" + reason + "\"");
    return "{\"engine\": \"ns3\", \"version\": \"" + std::string(kSimulatorVersion) +
           "\", \"congestion_controls\": [" + controls + "], \"refused\": {" + refused +
           "}, \"queues\": [\"droptail\", \"pfifo\", \"red\", \"codel\", \"fq_codel\", \"pie\"], "
           "\"losses\": [\"random\", \"listed\"], \"features\": [\"tcp\", \"cbr\", \"sack\", "
           "\"timestamps\", \"prr\", \"delayed_ack\", \"limited_transmit\", \"maximum_window\", "
           "\"arbitrary_topology\", \"queue_monitors\"]}";
}

} // namespace replicate
