#include "trace.hpp"

#include "errors.hpp"
#include "format.hpp"

namespace replicate
{

void Trace::Open(const std::string& path)
{
    m_path = path;
    m_file.open(path, std::ios::binary | std::ios::trunc);
    if (!m_file)
        throw InputError(path + ": cannot be created: give a writable path to --trace");
    m_file << "time_s,flow,event,sequence,cwnd_bytes,ssthresh_bytes\n";
}

void Trace::Add(std::int64_t time_ns, std::uint32_t flow, const char* event, std::uint32_t sequence,
                std::uint32_t cwnd, std::optional<std::uint32_t> ssthresh)
{
    m_file << DecimalSeconds(time_ns) << ',' << m_scenario.flows[flow].id << ',' << event << ','
           << sequence << ',' << cwnd << ',' << (ssthresh ? std::to_string(*ssthresh) : "") << '\n';
}

void Trace::Close()
{
    if (!m_file.is_open())
        return;
    m_file.close();
    if (!m_file)
        throw InputError(m_path + ": cannot be written: free some space");
}

} // namespace replicate
