#include "complain.hpp"

#include <exception>
#include <iostream>
#include <sstream>
#include <vector>

#include <unistd.h>

namespace replicate
{
namespace
{

std::vector<std::filesystem::path>& Unfinished()
{
    static std::vector<std::filesystem::path> paths;
    return paths;
}

/// ns-3 writes its reason to std::cerr before it terminates; nothing else does.
std::ostringstream& Reason()
{
    static std::ostringstream reason;
    return reason;
}

[[noreturn]] void OnTerminate()
{
    std::error_code ignored;
    for (const auto& path : Unfinished())
        std::filesystem::remove(path, ignored);
    _exit(Complain("internal error in ns-3: " + Reason().str(), 3));
}

} // namespace

int Complain(const std::string& message, int code)
{
    std::string line = "replicate-ns3: " + message;
    while (!line.empty() && line.back() == '\n')
        line.pop_back();
    for (char& c : line)
        if (static_cast<unsigned char>(c) < 0x20)
            c = ' ';
    line += '\n';
    for (std::size_t done = 0; done < line.size();) {
        const auto written = write(STDERR_FILENO, line.data() + done, line.size() - done);
        if (written <= 0)
            break;
        done += static_cast<std::size_t>(written);
    }
    return code;
}

void CatchFatalErrors()
{
    std::cerr.rdbuf(Reason().rdbuf());
    std::set_terminate(OnTerminate);
}

void RegisterUnfinished(const std::filesystem::path& path)
{
    Unfinished().push_back(path);
}

} // namespace replicate
